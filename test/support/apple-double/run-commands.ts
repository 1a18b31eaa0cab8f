import { randomUUID } from 'node:crypto';
import { aggregate, failure, type CliError } from './cli-error.ts';
import type { Image } from './configuration.ts';
import { pullImage } from './image-commands.ts';
import type { ParsedCall } from './parse-arguments.ts';
import { planContainer, planUser, requireName } from './plan-container.ts';
import { callShim, startShim } from './shim-call.ts';
import type { DoubleState } from './state.ts';

const NETWORKS = ['default'];

/** `run` and `create`. Returns the exit code. */
export async function runContainer(
  state: DoubleState,
  { command, options, positionals }: ParsedCall,
): Promise<number> {
  const [reference = '', ...words] = positionals;
  const id = options.one('name') ?? randomUUID();
  requireName(id);
  if (command === 'run' && state.findContainer(id) !== undefined)
    throw failure(`container with id ${id} already exists`);
  const progress = options.one('progress') ?? 'auto';
  if (command === 'run' && progress !== 'none')
    process.stderr.write('[1/6] Fetching image\n[6/6] Starting container\n');
  const image = state.findImage(reference) ?? pullImage(state, reference);
  const configuration = planContainer(id, options, { image, words, networks: NETWORKS });
  requireUser(image, options.one('user'));
  const interactive = options.has('interactive');
  if (!state.addContainer({ configuration, autoRemove: options.has('rm'), interactive }))
    throw failure(
      command === 'run' ? `container with id ${id} already exists` : `container already exists: ${id}`,
    );
  if (command === 'create') {
    process.stdout.write(`${id}\n`);
    return 0;
  }
  return bootContainer(state, id, { attach: !options.has('detach'), interactive });
}

export async function bootContainer(
  state: DoubleState,
  id: string,
  { attach, interactive }: { readonly attach: boolean; readonly interactive: boolean },
): Promise<number> {
  await startShim(state, id);
  const request = { type: 'start', attach, interactive: interactive && attach } as const;
  const end = await callShim(state, id, request, {
    interactive: request.interactive,
    until: attach ? 'exited' : 'started',
  });
  if (end.kind === 'failed') {
    state.removeContainer(id);
    throw toStartFailure(end.words);
  }
  if (end.kind === 'started') process.stdout.write(`${id}\n`);
  if (end.kind === 'hung up') throw failure('XPC connection error: Connection interrupted');
  return end.kind === 'exited' ? end.code : 0;
}

/** Whatever the runtime of this machine calls it. */
function toStartFailure(words: string): CliError {
  const missing = /exec: \\?"([^"\\]+)\\?": (executable file not found|stat)/.exec(words)?.[1];
  return missing === undefined
    ? failure(`failed to bootstrap container (cause: "internalError: "${words.trim()}"")`)
    : failure(
        `failed to start process (cause: "internalError: "failed to find target executable ${missing}"")`,
      );
}

function requireUser(image: Image, user: string | undefined): void {
  const entry = planUser(user ?? image.config.User ?? '0:0');
  if ('raw' in entry && !['root', 'runner'].includes(entry.raw.userString))
    throw failure(`unable to find user ${entry.raw.userString}`);
}

export async function execInContainer(
  state: DoubleState,
  { options, positionals }: ParsedCall,
): Promise<number> {
  const [id = '', ...words] = positionals;
  const record = state.findContainer(id);
  if (record === undefined) throw failure(`get failed: container ${id} not found`);
  if (state.stateOf(id).state !== 'running') throw failure(`container ${id} is not running`);
  // What the first process has comes first, and a second one of the same name does not replace it.
  const known = new Set(record.configuration.initProcess.environment.map((entry) => entry.split('=')[0]));
  const interactive = options.has('interactive');
  const detach = options.has('detach');
  const calling = callShim(
    state,
    id,
    {
      type: 'exec',
      words,
      env: options.all('env').filter((entry) => entry.includes('=') && !known.has(entry.split('=')[0])),
      cwd: options.one('workdir'),
      user: options.one('user'),
      interactive: interactive && !detach,
    },
    { interactive: interactive && !detach, until: 'exited' },
  );
  if (detach) {
    process.stdout.write(`${id}\n`);
    return 0;
  }
  const end = await calling;
  if (end.kind === 'failed') throw toStartFailure(end.words);
  if (end.kind !== 'exited') throw failure('XPC connection error: Connection interrupted');
  return end.code;
}

export async function startContainer(
  state: DoubleState,
  { options, positionals }: ParsedCall,
): Promise<number> {
  const [id = ''] = positionals;
  if (state.findContainer(id) === undefined) throw failure(`get failed: container ${id} not found`);
  const attach = options.has('attach') || options.has('interactive');
  if (state.stateOf(id).state === 'running') {
    if (attach) throw failure('attach is currently unsupported on already running containers');
    process.stdout.write(`${id}\n`);
    return 0;
  }
  return bootContainer(state, id, { attach, interactive: options.has('interactive') });
}

/** The ids of a command that takes several, or all; `verb` is for messages. */
export function toIds(state: DoubleState, { command, options, positionals }: ParsedCall): string[] {
  const named = command === 'delete' ? 'container ID(s)' : 'container IDs';
  if (positionals.length === 0 && !options.has('all'))
    throw failure('no containers specified and --all not supplied');
  if (positionals.length > 0 && options.has('all'))
    throw failure(`explicitly supplied ${named} conflict with the --all flag`);
  if (options.has('all')) return state.listContainers().map(({ configuration }) => configuration.id);
  return [...new Set(positionals)];
}

/** Does something to each; what went wrong is told at the end, all of it. */
export async function forEach(
  verb: string,
  ids: readonly string[],
  act: (id: string) => Promise<string | undefined>,
): Promise<number> {
  const problems: string[] = [];
  await Promise.all(
    ids.map(async (id) => {
      const cause = await act(id);
      if (cause === undefined) process.stdout.write(`${id}\n`);
      else problems.push(`internalError: "failed to ${verb} container" (cause: "${cause}")`);
    }),
  );
  if (problems.length > 0) throw aggregate(problems);
  return 0;
}
