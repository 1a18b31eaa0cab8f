import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import { FleetState } from '../../src/fleet/fleet-state.ts';
import { ensureBaseImage } from '../../test/support/base-image.ts';
import { EngineApi } from '../../test/support/engine-api.ts';
import { startPrivateEngine } from '../../test/support/private-engine.ts';
import { renderTable } from '../report/markdown-table.ts';
import { ForeignLoad } from '../support/foreign-load.ts';
import { describeMachine } from '../support/machine.ts';
import { note, progress } from '../support/progress.ts';
import { runCommand } from '../support/run-command.ts';
import { makeScratch } from '../support/scratch.ts';
import { median, shuffled } from '../support/statistics.ts';
import { FEATURE, calibrate, makeRepository, type Size } from './repository.ts';

const USAGE = `Usage: scripts/bench.sh fleet [OPTION…]        (npm run bench -- fleet [OPTION…])

  --rounds N         runs of each mode (default: 3)
  --seconds N        work of one task (default: 5)
  --start-docker     with a Docker engine of its own, if none runs; needs root
`;
const COMMAND = fileURLToPath(new URL('../../mahabharatha', import.meta.url));
const MOST_OVERHEAD = 1.05;
const MOST_SPAWN_SECONDS = 30;
const SETTLE_MS = 1000;

interface Way {
  readonly name: string;
  readonly flags: readonly string[];
}

interface Sample {
  /** Of every task, from its start to the end of its commit. */
  readonly taskMs: readonly number[];
  /** From the start of a worker until it is ready. */
  readonly spawnMs: readonly number[];
  readonly wholeMs: number;
}

async function openWays(
  stack: AsyncDisposableStack,
  startDocker: boolean,
  env: Record<string, string>,
): Promise<Way[]> {
  const ways: Way[] = [
    { name: 'subprocess', flags: ['--mode', 'subprocess'] },
    { name: 'container, oci', flags: ['--mode', 'container', '--driver', 'oci'] },
  ];
  const engine = startDocker
    ? await startPrivateEngine(stack, { data: 'kept' })
    : EngineApi.fromEnvironment();
  if ((await engine?.version()) === undefined || engine === undefined) {
    note('no Docker engine answers: docker is left out (--start-docker starts one)');
    return ways;
  }
  stack.defer(() => engine.close());
  env['HOTCELL_DOCKER_HOST'] = `unix://${engine.socket}`;
  progress('the image of the workers');
  const base = await ensureBaseImage(engine.socket);
  const { code, stderr } = await runCommand([COMMAND, 'build', '--base', base], { env });
  if (code !== 0) throw new Error(`hotcell fleet build failed: ${stderr}`);
  return [...ways, { name: 'container, docker', flags: ['--mode', 'container', '--driver', 'docker'] }];
}

async function run(way: Way, size: Size, workers: number, env: Record<string, string>): Promise<Sample> {
  await using stack = new AsyncDisposableStack();
  const cwd = await makeRepository(stack, size);
  const words = ['kurukshetra', '--feature', FEATURE, '--workers', String(workers), ...way.flags] as const;
  const { code, stderr, ms } = await runCommand([COMMAND, ...words], { cwd, env });
  if (code !== 0) throw new Error(`${way.name} failed: ${stderr}`);
  const text = readFileSync(join(cwd, '.mahabharatha/state', `${FEATURE}.json`), 'utf8');
  const state = FleetState.parse(JSON.parse(text));
  return {
    taskMs: Object.values(state.tasks).map(({ duration_ms: taken }) => taken ?? Number.NaN),
    spawnMs: Object.values(state.workers).map(
      ({ started_at: from, ready_at: to }) => Date.parse(to ?? '') - Date.parse(from ?? ''),
    ),
    wholeMs: ms,
  };
}

async function measure(
  stack: AsyncDisposableStack,
  options: { readonly rounds: number; readonly seconds: number; readonly startDocker: boolean },
): Promise<string> {
  const machine = await describeMachine();
  const state = join(makeScratch(stack), 'state');
  mkdirSync(state);
  const env: Record<string, string> = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '/',
    HOTCELL_STATE_DIR: state,
  };
  const node = bundledTools().find(({ name }) => name === 'node')?.path ?? process.execPath;
  const rounds = await calibrate(stack, node, options.seconds);
  // A core each: what is measured is the cell, not the crowd.
  const workers = Math.max(1, Math.min(4, machine.cores));
  const size: Size = { levels: 2, tasks: workers, rounds };
  const ways = await openWays(stack, options.startDocker, env);
  const samples = new Map<string, Sample[]>(ways.map(({ name }) => [name, []]));
  const foreign = new ForeignLoad();
  for (let round = 0; round < options.rounds; round++) {
    for (const way of shuffled(ways)) {
      progress(`round ${round + 1} of ${options.rounds}: ${way.name}`);
      await foreign.pause(SETTLE_MS);
      samples.get(way.name)?.push(await run(way, size, workers, env));
    }
  }
  return toReport(samples, {
    heading: `${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}; ${options.rounds} runs of ${size.levels * size.tasks} tasks with ${workers} workers. ${foreign.cores.toFixed(2)} cores were busy in the pauses.`,
  });
}

function toReport(
  samples: ReadonlyMap<string, readonly Sample[]>,
  { heading }: { readonly heading: string },
): string {
  const medianOf = (name: string, pick: (sample: Sample) => readonly number[]): number =>
    median((samples.get(name) ?? []).flatMap(pick));
  const task = (name: string): number => medianOf(name, ({ taskMs }) => taskMs);
  const spawn = (name: string): number => medianOf(name, ({ spawnMs }) => spawnMs);
  const whole = (name: string): number => medianOf(name, ({ wholeMs }) => [wholeMs]);
  const bare = 'subprocess';
  const names = [...samples.keys()];
  const required = names
    .filter((name) => name !== bare)
    .flatMap((name) => {
      const ratio = task(name) / task(bare);
      const slowest = Math.max(...(samples.get(name) ?? []).flatMap(({ spawnMs }) => spawnMs)) / 1000;
      return [
        [
          `${name}: time of a task / subprocess ≤ ${MOST_OVERHEAD}`,
          ratio.toFixed(3),
          ratio <= MOST_OVERHEAD ? 'ok' : 'MISSED',
        ],
        [
          `${name}: slowest start of a worker < ${MOST_SPAWN_SECONDS} s`,
          slowest.toFixed(1),
          slowest < MOST_SPAWN_SECONDS ? 'ok' : 'MISSED',
        ],
      ];
    });
  const rows = names.map((name) => [
    name,
    (task(name) / 1000).toFixed(2),
    (spawn(name) / 1000).toFixed(2),
    (whole(name) / 1000).toFixed(2),
    (whole(name) / whole(bare)).toFixed(3),
  ]);
  return [
    heading,
    '### Required',
    renderTable(['requirement', 'found', 'verdict'], required),
    '### Runs',
    renderTable(['mode', 's per task', 's to start a worker', 's in all', '× subprocess'], rows),
  ].join('\n\n');
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    'start-docker': { type: 'boolean', default: false },
  },
});
if (values.help === true) process.stdout.write(USAGE);
else {
  await using stack = new AsyncDisposableStack();
  try {
    if (!existsSync(COMMAND)) throw new Error(`there is no ${COMMAND}`);
    const { rounds, seconds } = values;
    const report = await measure(stack, {
      rounds: Number(rounds),
      seconds: Number(seconds),
      startDocker: values['start-docker'],
    });
    progress('');
    process.stdout.write(`${report}\n`);
  } catch (error) {
    note(`bench: ${error instanceof Error ? error.stack : String(error)}`);
    process.exitCode = 1;
  }
}
