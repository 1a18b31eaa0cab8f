import { McpDoor, type McpDoorOptions } from '../../mcp/door.ts';
import type { McpConfig } from '../config/mcp-config.ts';
import { readVersion } from '../read-version.ts';

export type McpParts = Omit<McpDoorOptions, 'settings'>;

/** The door of MCP with what is behind it; stdio and `/mcp` are the ways in. Closing it ends every session. */
export function openMcp({ waitMs, idleMs }: McpConfig, parts: McpParts): McpDoor {
  return new McpDoor({ ...parts, settings: { waitMs, idleMs, version: readVersion() } });
}
