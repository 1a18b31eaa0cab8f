import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Workbench } from './api.ts';
import { ScriptedBenches, run } from './scripted-benches.double.ts';
import type { ScriptedCell, ScriptedExec, ScriptedSite } from './scripted-site.double.ts';

const ME = { tenant: 'me' };
const WARM = { warmMs: 60_000 };
const READY = '\u0006';

let benches: ScriptedBenches;
let site: ScriptedSite;

const waits = ({ request }: ScriptedExec): boolean => request.argv.includes('{guest}/preload/wait.ts');
const waiting = (): ScriptedExec[] => site.cells.flatMap(({ codes }) => codes.filter(waits));
const cold = (): ScriptedExec[] => site.cells.flatMap(({ codes }) => codes.filter((exec) => !waits(exec)));
const codeOf = ({ spec }: ScriptedCell): string =>
  readFileSync(join(spec.folders?.[0]?.folder ?? '', 'main.ts'), 'utf8');

/** Says what code it found when it was told to go on; `onPlan` plays what happens before. */
function playBun(onPlan: (exec: ScriptedExec, packages: string[]) => void = (exec) => exec.say(READY)): void {
  site.program = (exec, cell) => {
    const finish = (): void => {
      exec.say(`ran ${codeOf(cell)}`);
      exec.exit();
    };
    if (!waits(exec)) finish();
    exec.onInput = () => {
      const [plan = '', go] = exec.stdin.split('\n');
      if (go === '') onPlan(exec, JSON.parse(plan));
      else if (go === 'go' && exec.heard.length === 0) finish();
    };
  };
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
}

async function runThen(bench: Workbench, code: string): Promise<string> {
  const { stdout } = await run(bench, code);
  await settled();
  return stdout;
}

beforeEach(() => {
  benches = new ScriptedBenches();
  ({ site } = benches);
  site.prepare = () =>
    Promise.resolve({ key: 'k', modules: 'store/k/node_modules', packages: [], fromStore: true });
  playBun();
});
afterEach(() => benches[Symbol.asyncDispose]());

describe('[MC-08] the Bun that waits', () => {
  test('is started after a run, and has the code of the next one', async () => {
    const bench = benches.open(WARM).open(ME);
    expect(await runThen(bench, 'one')).toBe('ran one');
    expect(waiting()).toHaveLength(1);
    expect(await runThen(bench, 'two')).toBe('ran two');
    expect(await runThen(bench, 'three')).toBe('ran three');
    expect([cold().length, waiting().length]).toEqual([1, 3]);
  });

  test('gets what is for the code after the word to go on, and its end', async () => {
    const bench = benches.open(WARM).open(ME);
    await runThen(bench, 'one');
    await run(bench, 'two', { stdin: 'from the caller' });
    const [exec] = waiting();
    expect(exec?.stdin).toBe('[]\ngo\nfrom the caller');
    expect(exec?.heard).toEqual(['eof']);
  });

  test('has found its file before the next code is put in its place', async () => {
    let wake: (() => void) | undefined;
    let found: string | undefined;
    playBun((exec) => {
      const [cell] = site.cells;
      wake = () => {
        found ??= cell && codeOf(cell);
        exec.say(READY);
      };
    });
    const bench = benches.open(WARM).open(ME);
    await runThen(bench, 'one');
    const next = run(bench, 'two');
    await settled();
    wake?.();
    expect((await next).stdout).toBe('ran two');
    expect(found).toBe('one');
  });

  test('is not started where the setting says so', async () => {
    const bench = benches.open({ warmMs: 0 }).open(ME);
    for (const code of ['one', 'two']) await runThen(bench, code);
    expect(waiting()).toEqual([]);
  });

  test('has loaded the packages that the next run imports in the same order', async () => {
    const asked: string[][] = [];
    playBun((exec, packages) => {
      asked.push(packages);
      exec.say(READY);
    });
    const bench = benches.open(WARM).open(ME);
    await runThen(bench, 'from "a" from "b"');
    await runThen(bench, 'from "a" from "b" // again');
    expect(asked).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
    expect(cold()).toHaveLength(1);
    await runThen(bench, 'from "b" from "a"');
    expect(cold()).toHaveLength(2);
  });

  test.each([
    ['prints', (exec: ScriptedExec) => exec.say('loaded\n')],
    ['prints before it is ready', (exec: ScriptedExec) => exec.say(`x${READY}`)],
    ['prints after it is ready', (exec: ScriptedExec) => (exec.say(READY), exec.say('x', 'stderr'))],
    ['ends', (exec: ScriptedExec) => exec.exit(1)],
  ])('is of no use with a package that %s, which is not tried again', async (_what, spoil) => {
    const asked: string[][] = [];
    playBun((exec, packages) => {
      asked.push(packages);
      if (packages.length > 0) spoil(exec);
      else exec.say(READY);
    });
    const bench = benches.open(WARM).open(ME);
    const outputs = [];
    for (const count of [1, 2, 3]) outputs.push(await runThen(bench, `from "loud" ${count}`));
    expect(outputs).toEqual(['ran from "loud" 1', 'ran from "loud" 2', 'ran from "loud" 3']);
    expect(asked).toEqual([['loud'], [], []]);
    expect(cold()).toHaveLength(2);
  });

  test('is not used with other permissions, and is gone before the run begins', async () => {
    const bench = benches.open({ ...WARM, grantable: { env: ['TOKEN'] } }).open(ME);
    bench.permissions.grant({ type: 'env', variables: ['TOKEN'] });
    await runThen(bench, 'one');
    const [exec] = waiting();
    expect(exec?.request.verbatim?.env).toHaveProperty('TOKEN');
    bench.permissions.revoke({ type: 'env', variables: ['TOKEN'] });
    let wasAlive: boolean | undefined;
    const { program } = site;
    site.program = (started, cell) => {
      wasAlive ??= exec?.heard.length === 0;
      program(started, cell);
    };
    expect(await runThen(bench, 'two')).toBe('ran two');
    expect(wasAlive).toBe(false);
    expect(cold()).toHaveLength(2);
    expect(exec?.stdin).not.toContain('go');
  });

  test('does not live beside a run of another language', async () => {
    const bench = benches.open(WARM).open(ME);
    await runThen(bench, 'one');
    const { program } = site;
    site.program = (exec) => exec.exit();
    await run(bench, '', { language: 'python' });
    expect(waiting()[0]?.heard).toEqual(['kill cancelled']);
    site.program = program;
  });

  test('is ended when nobody has wanted it for long, and with its workbench', async () => {
    const all = benches.open(WARM);
    const bench = all.open(ME);
    await runThen(bench, 'one');
    await benches.clock.advance(59_999);
    expect(waiting()[0]?.heard).toEqual([]);
    await benches.clock.advance(1);
    await settled();
    expect(waiting()[0]?.heard).toEqual(['kill cancelled']);
    await runThen(bench, 'two');
    await all.close();
    expect(waiting().map(({ heard }) => heard)).toEqual([['kill cancelled'], ['kill cancelled']]);
  });

  test('a cell that is lost meanwhile is replaced as ever', async () => {
    const bench = benches.open(WARM).open(ME);
    await runThen(bench, 'one');
    site.cells[0]?.lose();
    expect(await run(bench, 'two')).toMatchObject({ status: 'ok', stdout: 'ran two', cellId: 'cell2' });
  });

  test('one that is not ready in time is left behind', async () => {
    playBun(() => {});
    const bench = benches.open(WARM).open(ME);
    await runThen(bench, 'one');
    expect(await runThen(bench, 'two')).toBe('ran two');
    expect(waiting()[0]?.heard).toEqual(['kill cancelled']);
  });
});
