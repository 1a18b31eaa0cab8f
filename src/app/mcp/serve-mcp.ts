import { serveOverStdio, type StdioStreams } from '../../mcp/stdio-door.ts';
import { DEFAULT_TENANT } from '../../policy/tenants.ts';
import type { Config } from '../config/config.ts';
import { nextStop } from '../next-stop.ts';
import { openMcp, type McpParts } from './open-mcp.ts';

/** Serves one client until it closes stdin or a signal comes; resolves when everything is closed. */
export async function serveMcp(config: Config, parts: McpParts, streams: StdioStreams): Promise<void> {
  const { log } = parts;
  const stop = nextStop(['SIGTERM', 'SIGINT', 'SIGHUP']);
  const door = openMcp(config.mcp, parts);
  const connection = serveOverStdio(door, { tenant: DEFAULT_TENANT }, streams);
  log.info({ mode: config.mcp.mode }, 'server ready');
  const reason = await Promise.race([stop, connection.ended.then(() => 'the client has gone')]);
  log.info({ reason }, 'server stopping');
  await connection.close();
  await door.close();
  log.info({}, 'server stopped');
}
