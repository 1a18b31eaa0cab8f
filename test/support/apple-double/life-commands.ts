import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { failure } from './cli-error.ts';
import type { ContainerRecord } from './configuration.ts';
import { toCompactJson, toPrettyJson } from './foundation-json.ts';
import type { ParsedCall } from './parse-arguments.ts';
import { forEach, toIds } from './run-commands.ts';
import { callShim } from './shim-call.ts';
import type { DoubleState } from './state.ts';
import { isAtLeast } from './versions.ts';

const SIGNALS = 'HUP INT QUIT KILL USR1 USR2 TERM CONT STOP'.split(' ');

const notFound = (id: string): string => `notFound: "container with ID ${id} not found"`;
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/;

function readSignal(text: string): string | undefined {
  const name = text.toUpperCase().replace(/^SIG/, '');
  return SIGNALS.includes(name) || /^\d+$/.test(name) ? name : undefined;
}

/** Ends it and waits; also one that is ending already. */
async function end(
  state: DoubleState,
  id: string,
  signal: string,
  graceMs: number | undefined,
): Promise<void> {
  const request = {
    type: 'signal',
    signal,
    ...(graceMs === undefined ? {} : { thenKillAfterMs: graceMs }),
  } as const;
  await callShim(state, id, request, { interactive: false, until: 'exited' });
}

export function stopContainers(state: DoubleState, call: ParsedCall): Promise<number> {
  const signal = readSignal(call.options.one('signal') ?? 'TERM');
  const graceMs = Number(call.options.one('time') ?? 5) * 1000;
  return forEach('stop', toIds(state, call), async (id) => {
    if (state.findContainer(id) === undefined) return notFound(id);
    if (signal === undefined) return `invalidArgument: "invalid signal: ${call.options.one('signal')}"`;
    if (state.stateOf(id).state === 'running') await end(state, id, signal, graceMs);
    return undefined;
  });
}

export function killContainers(state: DoubleState, call: ParsedCall): Promise<number> {
  const signal = readSignal(call.options.one('signal') ?? 'KILL');
  return forEach('kill', toIds(state, call), async (id) => {
    if (state.findContainer(id) === undefined) return notFound(id);
    if (signal === undefined) return `invalidArgument: "invalid signal: ${call.options.one('signal')}"`;
    if (state.stateOf(id).state !== 'running')
      return 'invalidState: "no runtime client exists: container is stopped"';
    await end(state, id, signal, undefined);
    return undefined;
  });
}

export function deleteContainers(state: DoubleState, call: ParsedCall): Promise<number> {
  const force = call.options.has('force');
  const isSkipped = (id: string): boolean =>
    call.options.has('all') && !force && state.stateOf(id).state === 'running';
  const ids = toIds(state, call).filter((id) => !isSkipped(id));
  return forEach('delete', ids, async (id) => {
    if (!NAME.test(id)) return `invalidArgument: "container ID ${id} is not a valid container ID"`;
    if (state.findContainer(id) === undefined) return notFound(id);
    if (state.stateOf(id).state === 'running') {
      if (!force) return `invalidState: "container ${id} is running and can not be deleted"`;
      await end(state, id, 'KILL', 0);
    }
    // One with `--rm` may just have removed itself.
    return state.removeContainer(id) ? undefined : notFound(id);
  });
}

/** The form of 1.0 and later, and the one before. */
function toEntry(state: DoubleState, { configuration }: ContainerRecord): object {
  const { state: word, startedDate } = state.stateOf(configuration.id);
  if (!isAtLeast(state.control.version, '1.0.0')) return { configuration, networks: [], status: word };
  return { configuration, id: configuration.id, status: { networks: [], startedDate, state: word } };
}

export function listContainers(state: DoubleState, { options }: ParsedCall): number {
  const all = state.listContainers();
  const shown = options.has('all')
    ? all
    : all.filter(({ configuration }) => state.stateOf(configuration.id).state === 'running');
  const ids = shown.map(({ configuration }) => configuration.id);
  if (options.has('quiet')) process.stdout.write(ids.map((id) => `${id}\n`).join(''));
  else if (options.one('format') === 'json') {
    const entries = shown.map((record) => toEntry(state, record));
    process.stdout.write(`${toCompactJson(entries, state.control.version)}\n`);
  } else process.stdout.write(['ID IMAGE OS ARCH STATE IP CPUS MEMORY STARTED', ...ids].join('\n') + '\n');
  return 0;
}

export function inspectContainers(state: DoubleState, { positionals }: ParsedCall): number {
  const ids = [...new Set(positionals)];
  const missing = ids.filter((id) => state.findContainer(id) === undefined);
  if (missing.length > 0) throw failure(`container not found: ${missing.join(', ')}`);
  const entries = state
    .listContainers()
    .filter(({ configuration }) => ids.includes(configuration.id))
    .map((record) => toEntry(state, record));
  process.stdout.write(`${toPrettyJson(entries, state.control.version)}\n`);
  return 0;
}

export function showLogs(state: DoubleState, { options, positionals }: ParsedCall): number {
  const [id = ''] = positionals;
  if (state.findContainer(id) === undefined) {
    const inner = `internalError: "failed to open container logs: ${notFound(id)}"`;
    throw failure(`failed to get logs for container ${id} (cause: "${inner}")`);
  }
  const lines = readLog(join(state.folderOf(id), 'stdio.log'));
  const count = options.one('n');
  const shown = count === undefined ? lines : lines.filter((line) => line !== '').slice(-Number(count));
  process.stdout.write(shown.join('\n') + (shown.length > 0 ? '\n' : ''));
  return 0;
}

function readLog(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(0, -1);
  } catch {
    return [];
  }
}

export function showStats(state: DoubleState, { options, positionals }: ParsedCall): number {
  for (const id of positionals) {
    if (state.findContainer(id) === undefined) throw failure(`no such container: ${id}`);
  }
  const running = state
    .listContainers()
    .map(({ configuration }) => configuration)
    .filter(({ id }) => positionals.length === 0 || positionals.includes(id))
    .filter(({ id }) => state.stateOf(id).state === 'running');
  const stats = running.map(({ id, resources }) => ({
    cpuUsageUsec: 1000,
    id,
    memoryLimitBytes: resources.memoryInBytes,
    memoryUsageBytes: 1024 * 1024,
    numProcesses: 1,
  }));
  if (options.one('format') === 'json')
    process.stdout.write(`${toCompactJson(stats, state.control.version)}\n`);
  return 0;
}
