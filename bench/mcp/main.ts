import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import { renderTable } from '../report/markdown-table.ts';
import { ForeignLoad } from '../support/foreign-load.ts';
import { describeMachine } from '../support/machine.ts';
import { note, progress } from '../support/progress.ts';
import { runCommand } from '../support/run-command.ts';
import { makeScratch } from '../support/scratch.ts';
import { shuffled, summarize, type Summary } from '../support/statistics.ts';
import { McpRunner, type Mode } from './runner.ts';

const USAGE = `Usage: scripts/bench.sh mcp [OPTION…]        (npm run bench -- mcp [OPTION…])

  --rounds N         samples of each way (default: 40)
`;
const HELLO = 'console.log("hello")';
const ZOD = 'import { z } from "zod"; console.log(z.string().parse("hello"))';
const ANSWER = 'hello\n';
/** A model thinks longer than that between two calls. */
const SETTLE_MS = 250;
const ROUNDS_BEFORE = 3;
const MODES: readonly Mode[] = ['container', 'preload'];
const MOST_TO_BARE: Readonly<Record<Mode, number>> = { container: 2, preload: 3 };
const MOST_TO_HELLO = 1.5;

type Ways = Map<string, () => Promise<unknown>>;

async function openWays(stack: AsyncDisposableStack): Promise<Ways> {
  const scratch = makeScratch(stack);
  const file = join(scratch, 'hello.ts');
  writeFileSync(file, HELLO);
  const bun = bundledTools().find(({ name }) => name === 'bun')?.path ?? 'bun';
  const ways: Ways = new Map([['bare', () => runCommand([bun, 'run', file])]]);
  for (const mode of MODES) {
    // Each code has a session of its own: what waits in it was started for the run before.
    for (const [name, code] of [
      ['hello', HELLO],
      ['zod', ZOD],
    ] as const) {
      progress(`${mode}: the first run of ${name}`);
      const runner = stack.use(await McpRunner.start(mode, join(scratch, name)));
      await runner.run(code, ANSWER);
      ways.set(`${mode}, ${name}`, () => runner.run(code, ANSWER));
    }
  }
  return ways;
}

async function sample(ways: Ways, rounds: number, foreign: ForeignLoad): Promise<Map<string, Summary>> {
  const samples = new Map([...ways.keys()].map((name) => [name, [] as number[]]));
  for (let round = -ROUNDS_BEFORE; round < rounds; round++) {
    if (round % 10 === 0) progress(`round ${round} of ${rounds}`);
    for (const [name, run] of shuffled([...ways])) {
      await foreign.pause(SETTLE_MS);
      const startedAt = performance.now();
      await run();
      if (round >= 0) samples.get(name)?.push(performance.now() - startedAt);
    }
  }
  return new Map([...samples].map(([name, ms]) => [name, summarize(ms)]));
}

function toRequired(found: ReadonlyMap<string, Summary>): string[][] {
  const median = (name: string): number => found.get(name)?.median ?? Number.NaN;
  const row = (text: string, value: number, most: number): string[] => [
    `${text} ≤ ${most}`,
    value.toFixed(2),
    value <= most ? 'ok' : 'MISSED',
  ];
  return MODES.flatMap((mode) => [
    row(`${mode}: run_code of hello / bare`, median(`${mode}, hello`) / median('bare'), MOST_TO_BARE[mode]),
    row(`${mode}: with zod / hello`, median(`${mode}, zod`) / median(`${mode}, hello`), MOST_TO_HELLO),
  ]);
}

async function measure(stack: AsyncDisposableStack, rounds: number): Promise<string> {
  const foreign = new ForeignLoad();
  const found = await sample(await openWays(stack), rounds, foreign);
  const bare = found.get('bare')?.median ?? Number.NaN;
  const machine = await describeMachine();
  const rows = [...found].map(([name, { median, p95, least }]) => [
    name,
    median.toFixed(1),
    p95.toFixed(1),
    least.toFixed(1),
    (median / bare).toFixed(2),
  ]);
  return [
    `${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}; ${rounds} rounds. ` +
      `${foreign.cores.toFixed(2)} cores were busy in the pauses, with processes that start to wait.`,
    '### Required',
    renderTable(['requirement', 'found', 'verdict'], toRequired(found)),
    '### Runs over stdio',
    renderTable(['way', 'ms', 'p95', 'least', '× bare'], rows),
  ].join('\n\n');
}

const { values } = parseArgs({
  options: { help: { type: 'boolean', short: 'h' }, rounds: { type: 'string', default: '40' } },
});
if (values.help === true) process.stdout.write(USAGE);
else {
  await using stack = new AsyncDisposableStack();
  try {
    const report = await measure(stack, Number(values.rounds));
    progress('');
    process.stdout.write(`${report}\n`);
  } catch (error) {
    note(`bench: ${error instanceof Error ? error.stack : String(error)}`);
    process.exitCode = 1;
  }
}
