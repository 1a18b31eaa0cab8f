import { isIPv4, type AddressInfo } from 'node:net';
import type { Note } from '../core/driver.ts';
import { HotcellError, messageOf } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { buildHttpServer } from '../http/server.ts';
import { McpHttpDoor } from '../mcp/http-door.ts';
import type { LanguageStatus } from '../runs/run.ts';
import type { DriverChoice } from './drivers/choose-driver.ts';
import type { DriverHooks } from './drivers/make-drivers.ts';
import type { Config } from './config/config.ts';
import { startEngine } from './engine.ts';
import { openMcp } from './mcp/open-mcp.ts';
import { openConfiguredWorkbenches } from './mcp/open-workbenches.ts';
import { nextStop } from './next-stop.ts';
import { readVersion } from './read-version.ts';

export interface ServeHooks extends DriverHooks {
  onReady(info: {
    url: string;
    driver: string;
    reason: string;
    runtime: string;
    strategy: string;
    languages: LanguageStatus[];
    notes: readonly Note[];
  }): void;
}

/** Serves until SIGTERM or SIGINT; resolves with the exit code when everything is gone. */
export async function serve(config: Config, hooks: ServeHooks): Promise<number> {
  requireSafeListening(config);
  const { log } = hooks;
  const stop = nextStop(['SIGTERM', 'SIGINT']);
  const engine = await startEngine(config, hooks);
  const mcp = config.mcp.enabled ? openServedMcp(config, engine.choice, log) : undefined;
  const server = buildHttpServer({
    ...engine,
    mcp: mcp?.handler,
    mcpProblem: 'the setting mcp.enabled is false',
    log,
    options: { ...config, version: readVersion() },
  });
  try {
    await server.listen({ host: config.host, port: config.port });
  } catch (error) {
    await mcp?.close();
    await engine.close();
    throw toListenError(error, config);
  }
  const port = portOf(server.server.address());
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;
  const { driver, probe, reason } = engine.choice;
  hooks.onReady({
    url: `http://${host}:${port}`,
    driver: driver.name,
    reason,
    runtime: probe.runtime,
    strategy: engine.strategy,
    languages: engine.runs.languages(),
    notes: probe.notes,
  });

  const signal = await stop;
  log.info({ signal }, 'server stopping');
  // Cells of AI clients go before the driver that made them.
  const close = async (): Promise<void> => {
    await mcp?.close();
    await engine.close();
  };
  await Promise.all([server.close(), close()]);
  log.info({}, 'server stopped');
  return 0;
}

function openServedMcp(config: Config, driver: DriverChoice, log: Log) {
  const { max: sessions, idleMs } = config.mcp;
  const workbenches = () => openConfiguredWorkbenches(config, log, driver);
  const door = openMcp(config.mcp, { workbenches, log });
  const handler = new McpHttpDoor(door, { sessions, idleMs });
  return {
    handler,
    // The way in before what is behind it.
    close: async (): Promise<void> => {
      await handler.close();
      await door.close();
    },
  };
}

/** SECURITY: whoever reaches the port runs code; beyond this machine that needs a key or somebody's explicit word. */
function requireSafeListening(config: Config): void {
  const loopback =
    config.host === 'localhost' ||
    config.host === '::1' ||
    (isIPv4(config.host) && config.host.startsWith('127.'));
  const hasKeys =
    config.apiKey !== undefined ||
    Object.values(config.tenants).some((tenant) => tenant.keySha256 !== undefined);
  if (loopback || hasKeys || config.allowAnonymous) return;
  throw new HotcellError(
    'CONFIG_INVALID',
    `host: ${config.host} can be reached from other machines, and there is no key`,
    {
      field: 'host',
      hint: 'Set HOTCELL_API_KEY, or say --allow-anonymous, or listen on 127.0.0.1.',
    },
  );
}

function toListenError(error: unknown, config: Config): HotcellError {
  const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
  return new HotcellError(
    'CONFIG_INVALID',
    `cannot listen on ${config.host}:${config.port}: ${messageOf(error)}`,
    {
      field: 'port',
      hint: taken
        ? 'Another program has the port; choose one with --port.'
        : 'Choose another --host or --port.',
      cause: error,
    },
  );
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new TypeError('the server listens on no port');
  return address.port;
}
