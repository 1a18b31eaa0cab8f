import type { Log } from '../../core/log.ts';
import { McpDoor } from '../../mcp/door.ts';
import { McpHttpDoor } from '../../mcp/http-door.ts';
import type { Workbenches } from '../../workbench/api.ts';
import type { McpConfig } from '../config/mcp-config.ts';

export interface McpParts {
  /** Called by the first call that needs them, not before: the first answer of the protocol waits for nothing. */
  workbenches(): Promise<Workbenches>;
  readonly version: string;
  readonly log: Log;
}

/** The door of MCP with what is behind it; `serveOverStdio` and `openMcpHttp` are the ways in. Closing it ends every session. */
export function openMcp(config: McpConfig, parts: McpParts): McpDoor {
  const { version, log } = parts;
  const { waitMs, idleMs } = config;
  return new McpDoor({
    workbenches: () => parts.workbenches(),
    log,
    settings: { waitMs, idleMs, version },
  });
}

/** The way in for `/mcp`. To be closed before the door. */
export function openMcpHttp(door: McpDoor, { max, idleMs }: McpConfig): McpHttpDoor {
  return new McpHttpDoor(door, { sessions: max, idleMs });
}
