import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Cell, CellSpec } from '../core/cell.ts';
import { PROMISES } from '../core/enforcement.ts';
import type { ExecRequest } from '../core/exec.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import { SubprocessDriver } from '../drivers/subprocess/driver.ts';
import type { CellNetwork } from '../egress/cell-network.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { FurnishedCell } from './furnished-cell.ts';
import { printedBy } from './printed-by.ts';
import { readOutcome } from './read-outcome.ts';
import { runToEnd, type RunOptions } from './run-to-end.ts';

const stateDirectory = mkdtempSync(join(tmpdir(), 'hotcell-cells-'));
const driver = new SubprocessDriver({
  stateDirectory,
  guest: fileURLToPath(new URL('../../guest', import.meta.url)),
  tools: [],
  weaker: PROMISES,
});
const SPEC: CellSpec = { name: 'cells', kind: 'run', limits: DEFAULT_LIMITS };

let cell: Cell;
beforeEach(async () => {
  cell = await driver.create(SPEC);
});
afterEach(() => cell.dispose());
afterAll(async () => {
  await driver.close();
  rmSync(stateDirectory, { recursive: true, force: true });
  rmSync(`${stateDirectory}-subprocess`, { recursive: true, force: true });
});

const sh = (script: string): ExecRequest => ({ argv: ['sh', '-c', script], env: {} });

async function run(
  script: string,
  options: RunOptions = {},
): Promise<{ code: number; reason: string; said: string }> {
  const stdout = new CappedBytes(4096);
  const { outcome } = await runToEnd(cell, sh(script), { ...options, stdout });
  const { exitCode, reason } = readOutcome(outcome);
  return { code: exitCode, reason, said: stdout.text() };
}

/** Goes on for ever, and says first that it runs; `trap` is what it does when it is asked to end. */
const endless = (trap: string): string => `trap '${trap}' TERM; echo up; while :; do sleep 0.02; done`;

describe('a run to the end', () => {
  test('[RS-02] has its input, its output and its exit code', async () => {
    const input = Buffer.from('in');
    expect(await run('cat; echo " out"; echo err >&2; exit 3', { input })).toEqual({
      code: 3,
      reason: 'exit',
      said: 'in out\n',
    });
  });

  test('[CX-05, RS-07] at its time it is killed, and is 124', async () => {
    expect(await run(endless(''), { timeMs: 200 })).toMatchObject({ code: 124, reason: 'timeout' });
  });

  test('[RS-07] with a grace it is asked first, and is 124 whatever it makes of it', async () => {
    for (const [trap, graceMs] of [
      ['exit 0', 30_000],
      ['echo no', 100],
    ] as const)
      expect(await run(endless(trap), { timeMs: 300, graceMs })).toMatchObject({ code: 124 });
  });

  test('[MC-12] nobody wants it any more: 130, before it began and while it runs', async () => {
    expect(await run(endless(''), { signal: AbortSignal.abort() })).toMatchObject({ code: 130 });
    const unwanted = new AbortController();
    const onOutput = (): void => unwanted.abort();
    const asked = { signal: unwanted.signal, graceMs: 30_000, onOutput };
    expect(await run(endless('echo bye; exit 7'), asked)).toEqual({
      code: 130,
      reason: 'cancelled',
      said: 'up\nbye\n',
    });
  });

  test('[RS-02] one that ended by itself is not changed by an abort that comes too late', async () => {
    const late = new AbortController();
    expect(await run('exit 5', { signal: late.signal })).toMatchObject({ code: 5, reason: 'exit' });
    late.abort();
  });

  test('[CX-06] too much output ends it', async () => {
    const flood = 'while :; do echo 0123456789; echo 0123456789 >&2; done';
    expect(await run(flood, { outputBytes: 100_000 })).toMatchObject({ code: 137, reason: 'output' });
    expect(await run('echo 0123456789', { outputBytes: 11 })).toMatchObject({ code: 0 });
  });

  test('[RS-06] a listener that takes its time keeps the next piece waiting', async () => {
    let inside = 0;
    let most = 0;
    const onOutput = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await new Promise(setImmediate);
      inside--;
    };
    await run('for i in 1 2 3 4 5; do echo $i; sleep 0.01; done', { onOutput });
    expect(most).toBe(1);
  });

  test('[RS-07] one that cannot be killed is told of', async () => {
    const exec = await cell.exec(sh('read word'));
    const stubborn = Object.assign(Object.create(exec) as typeof exec, {
      kill: () => Promise.reject(new Error('EAGAIN')),
      closeStdin: () => {},
    });
    const unkillable = new Promise<void>((resolve) => {
      const starter = { exec: () => Promise.resolve(stubborn) };
      runToEnd(starter, sh(''), { timeMs: 1, onUnkillable: resolve }).catch(() => {});
    });
    await unkillable;
    await exec.kill('cancelled');
  });
});

describe('what a command prints', () => {
  test('[MC-10] comes whole, however slowly it is read', async () => {
    let bytes = 0;
    for await (const piece of printedBy(cell, sh('head -c 3000000 /dev/zero'), {})) {
      bytes += piece.length;
      await new Promise(setImmediate);
    }
    expect(bytes).toBe(3_000_000);
  });

  test('[MC-10] is not taken for whole when the command failed', async () => {
    const read = async (): Promise<void> => {
      const pieces = printedBy(cell, sh('echo half; exit 2'), {});
      for await (const { length } of pieces) expect(length).toBeGreaterThan(0);
    };
    await expect(read()).rejects.toMatchObject({ code: 'CELL_LOST' });
  });
});

describe('a furnished cell', () => {
  const make = (more: object = {}): Promise<FurnishedCell> =>
    FurnishedCell.make({ driver, spec: SPEC, log: SILENT_LOG, ...more });

  const network = (closed: string[]): CellNetwork =>
    ({
      variables: { HTTP_PROXY: 'http://gate' },
      untilReady: () => Promise.resolve(),
      close: () => closed.push('closed'),
    }) as unknown as CellNetwork;

  test('[SC-04] that does not see what we see is not used, and nothing is left of it', async () => {
    const before = driver.list().length;
    const sight = { ask: sh('echo other'), answer: ['token'] };
    await expect(make({ sight })).rejects.toMatchObject({ code: 'POLICY_UNENFORCEABLE' });
    expect(driver.list()).toHaveLength(before);
    await using seen = await make({ sight: { ask: sh('echo token; echo /place'), answer: ['token'] } });
    expect(seen.seen[0]).toBe('/place');
  });

  test('[RS-15] programs are told of the way out and of authorities once it is open', async () => {
    const closed: string[] = [];
    await using made = await make({ caBundle: Buffer.from('PEM\n') });
    expect(made.variables).toEqual({});
    const opened = await Promise.all([
      made.openNetwork(() => Promise.resolve(network(closed)), []),
      made.openNetwork(() => Promise.reject(new Error('a second one')), []),
    ]);
    expect(opened[0]).toBe(opened[1]);
    await made.layAuthorities();
    const stdout = new CappedBytes(100);
    const request = { ...sh('cat "$SSL_CERT_FILE"; echo "$HTTP_PROXY"'), env: made.variables };
    await made.run(request, { stdout });
    expect(stdout.text()).toBe('PEM\nhttp://gate\n');
    await made[Symbol.asyncDispose]();
    expect(closed).not.toHaveLength(0);
  });

  test('[RS-15] a way out that could not be opened is tried again', async () => {
    await using made = await make();
    await expect(made.openNetwork(() => Promise.reject(new Error('no gate')), [])).rejects.toThrow('no gate');
    const opened = await made.openNetwork(() => Promise.resolve(network([])), []);
    expect(opened.variables).toHaveProperty('HTTP_PROXY');
  });
});
