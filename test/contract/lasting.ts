import { requireFreezer, requireLasting, requireLastingCell } from '../../src/core/capabilities.ts';
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, type test } from 'vitest';
import type { Cell } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import type { Exec } from '../../src/core/exec.ts';
import { waitFor } from '../support/leftovers.ts';
import { bash, finish, readLine } from './cells.ts';
import type { ChildTask, LastWords } from './lasting-child.ts';
import { lastingSpec, toDriver, type DriverWords } from './lasting-drivers.ts';

const CHILD = fileURLToPath(new URL('lasting-child.ts', import.meta.url));

/** Of all cells that were made here: whatever else is in an engine is somebody else's. */
export const usedStores = new Set<string>();

export interface LastingSubject {
  readonly words: DriverWords;
}

interface Servers {
  /** Drivers are servers here: each is closed at the end, whatever the test does. */
  readonly makeServer: () => Driver;
  readonly newStore: () => string;
}

async function withServers(
  { words }: LastingSubject,
  check: (servers: Servers) => Promise<void>,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const stores: string[] = [];
  const makeServer = (): Driver => {
    const driver = toDriver(words);
    stack.defer(() => driver.close());
    return driver;
  };
  const newStore = (): string => {
    const store = randomBytes(6).toString('hex');
    stores.push(store);
    usedStores.add(store);
    return store;
  };
  try {
    await check({ makeServer, newStore });
  } catch (error) {
    // Whoever has failed has not disposed of its cells.
    const driver = makeServer();
    for (const store of stores) await requireLasting(driver).reclaim(store, new Set());
    throw error;
  }
}

export function startChild(task: ChildTask, wrapper: readonly string[] = []): ChildProcess {
  const [program, ...args] = [...wrapper, process.execPath, CHILD, JSON.stringify(task)];
  return spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

export async function firstLine({ stdout }: ChildProcess): Promise<string> {
  let text = '';
  for await (const bytes of stdout ?? []) {
    text += String(bytes);
    if (text.includes('\n')) break;
  }
  return text.trim();
}

async function run(cell: Cell, script: string): Promise<string> {
  const exec = await cell.exec(bash(script));
  exec.closeStdin();
  const { stdout, stderr } = await finish(exec);
  exec.lasting?.forget();
  return stdout + stderr;
}

function resumed(cell: Cell, id: number, fromByte: number): Exec {
  const exec = requireLastingCell(cell).resume(id, fromByte);
  if (exec === undefined) throw new Error(`the cell knows nothing of command ${id}`);
  return exec;
}

/** The rest of what the dead server's commands had to say. */
async function goOn(cell: Cell, { commands }: LastWords): Promise<void> {
  const [long, shell] = commands;
  if (long === undefined || shell === undefined) throw new Error('the child has said too little');
  const rest = resumed(cell, long.id, long.text.length);
  rest.write(Buffer.from('word\n'));
  const { stdout, stderr, outcome } = await finish(rest);
  const lines = Array.from({ length: 60_000 }, (_, at) => `line ${at + 1}\n`).join('');
  expect(long.text + stdout === `${lines}got word\n`).toBe(true);
  expect([stderr, outcome]).toEqual(['done\n', { kind: 'exited', code: 3 }]);
  const terminal = resumed(cell, shell.id, shell.text.length);
  terminal.resize?.({ rows: 21, columns: 71 });
  terminal.write(Buffer.from('stty size; exit 4\n'));
  const end = await finish(terminal);
  expect(end.stdout).toContain('21 71\r\n');
  expect(end.outcome).toEqual({ kind: 'exited', code: 4 });
  for (const exec of [rest, terminal]) exec.lasting?.forget();
}

async function afterTheEndOf(
  subject: LastingSubject,
  task: 'work' | 'leave',
  endIt: (child: ChildProcess) => void,
): Promise<void> {
  await withServers(subject, async ({ makeServer, newStore }) => {
    const store = newStore();
    const child = startChild({ words: subject.words, store, task });
    const exited = once(child, 'exit');
    const last = JSON.parse(await firstLine(child)) as LastWords;
    endIt(child);
    await exited;
    const cell = await requireLasting(makeServer()).adopt(last.record, lastingSpec(store));
    expect(cell.lasting?.record).toBe(last.record);
    await goOn(cell, last);
    expect(await run(cell, 'echo fine')).toBe('fine\n');
    await cell.dispose();
  });
}

const cpuMsOf = async (cell: Cell): Promise<number> => (await cell.usage()).cpuMs;

/** What a driver must do with cells that outlive their server. */
export const LASTING = {
  'a server that is killed while commands write loses nothing': (subject: LastingSubject) =>
    afterTheEndOf(subject, 'work', (child) => child.kill('SIGKILL')),
  'a server that stops leaves its cells running, and its process ends by itself': (subject: LastingSubject) =>
    afterTheEndOf(subject, 'leave', () => {}),
  'a frozen cell uses no CPU, and goes on where it was': (subject: LastingSubject) =>
    withServers(subject, async ({ makeServer, newStore }) => {
      const cell = await makeServer().create(lastingSpec(newStore()));
      const busy = await cell.exec(bash('echo up; while :; do :; done'));
      await readLine(busy);
      await waitFor('it is busy', async () => (await cpuMsOf(cell)) > 200);
      await requireFreezer(cell).freeze();
      const frozen = await cpuMsOf(cell);
      const until = performance.now() + 700;
      await waitFor('time passes', () => performance.now() > until);
      expect((await cpuMsOf(cell)) - frozen).toBeLessThan(20);
      await requireFreezer(cell).thaw();
      await waitFor('it is busy again', async () => (await cpuMsOf(cell)) > frozen + 100);
      await busy.kill('cancelled');
      expect((await finish(busy)).outcome).toEqual({ kind: 'cancelled' });
      await cell.dispose();
    }),
  'a frozen cell can be taken over, and then runs': (subject: LastingSubject) =>
    withServers(subject, async ({ makeServer, newStore }) => {
      const [first, spec] = [makeServer(), lastingSpec(newStore())];
      const cell = await first.create(spec);
      await requireFreezer(cell).freeze();
      await first.close();
      const adopted = await requireLasting(makeServer()).adopt(requireLastingCell(cell).record, spec);
      expect(await run(adopted, 'echo fine')).toBe('fine\n');
      await adopted.dispose();
    }),
  'a cell that has ended behind the back of its server is lost, and nothing else, to whoever freezes it': (
    subject: LastingSubject,
  ) =>
    withServers(subject, async ({ makeServer, newStore }) => {
      const [driver, other, store] = [makeServer(), makeServer(), newStore()];
      const cell = await driver.create(lastingSpec(store));
      await requireLasting(other).reclaim(store, new Set());
      await expect(requireFreezer(cell).freeze()).rejects.toMatchObject({ code: 'CELL_LOST' });
      await cell.gone;
    }),
  'a frozen cell can be removed': (subject: LastingSubject) =>
    withServers(subject, async ({ makeServer, newStore }) => {
      const [driver, store] = [makeServer(), newStore()];
      const [one, other] = [await driver.create(lastingSpec(store)), await driver.create(lastingSpec(store))];
      await Promise.all([requireFreezer(one).freeze(), requireFreezer(other).freeze()]);
      await one.dispose();
      await one.gone;
      expect(await requireLasting(driver).reclaim(store, new Set())).toEqual([other.id]);
      await other.gone;
      expect(driver.list()).toEqual([]);
    }),
  'only cells of the same store that nobody wants are removed': (subject: LastingSubject) =>
    withServers(subject, async ({ makeServer, newStore }) => {
      const [store, stranger, first] = [newStore(), newStore(), makeServer()];
      const make = (who: string): Promise<Cell> => first.create(lastingSpec(who));
      const [wanted, unwanted, strange] = [await make(store), await make(store), await make(stranger)];
      await first.close();
      const next = makeServer();
      expect([await next.orphans(), await next.reclaim()]).toEqual([[], []]);
      const listed = await requireLasting(next).list();
      const idsOf = (who: string): string[] =>
        listed.flatMap((cell) => (cell.store === who ? cell.id : [])).toSorted();
      expect(idsOf(store)).toEqual([wanted.id, unwanted.id].toSorted());
      expect(idsOf(stranger)).toEqual([strange.id]);
      expect(await requireLasting(next).reclaim(store, new Set([wanted.id]))).toEqual([unwanted.id]);
      expect(await requireLasting(next).reclaim(store, new Set([wanted.id]))).toEqual([]);
      const gone = requireLasting(next).adopt(requireLastingCell(unwanted).record, lastingSpec(store));
      await expect(gone).rejects.toMatchObject({ code: 'CELL_LOST' });
      for (const [cell, who] of [
        [wanted, store],
        [strange, stranger],
      ] as const) {
        const adopted = await requireLasting(next).adopt(requireLastingCell(cell).record, lastingSpec(who));
        expect(await run(adopted, 'echo fine')).toBe('fine\n');
        await adopted.dispose();
      }
    }),
  'no program of the cell can speak for the server, nor hear it': (subject: LastingSubject) =>
    withServers(subject, async ({ makeServer, newStore }) => {
      const [first, spec] = [makeServer(), lastingSpec(newStore())];
      const cell = await first.create(spec);
      const attempt = `for f in /run/hotcell/* /proc/1/fd/0 /proc/1/fd/1; do
        for how in '<>' '>>' '<'; do (eval "exec 3$how $f") 2>/dev/null && echo "opened $f $how"; done
      done; chmod 666 /run/hotcell/* 2>/dev/null && echo changed; true`;
      expect(await run(cell, attempt)).toBe('');
      await first.close();
      const adopted = await requireLasting(makeServer()).adopt(requireLastingCell(cell).record, spec);
      expect(await run(adopted, attempt)).toBe('');
      await adopted.dispose();
    }),
  'a cell that ended while no server was there is lost': (subject: LastingSubject) =>
    withServers(subject, async ({ makeServer, newStore }) => {
      const [first, spec] = [makeServer(), lastingSpec(newStore())];
      const cell = await first.create(spec);
      const [one, other] = [makeServer(), makeServer()];
      await first.close();
      await (await requireLasting(one).adopt(requireLastingCell(cell).record, spec)).dispose();
      await expect(requireLasting(other).adopt(requireLastingCell(cell).record, spec)).rejects.toMatchObject({
        code: 'CELL_LOST',
      });
    }),
} satisfies Record<string, (subject: LastingSubject) => Promise<void>>;

export type LastingName = keyof typeof LASTING;
export type LastingExemptions = Readonly<Partial<Record<LastingName, string>>>;

/** Holds one driver to what is promised of cells that last. */
export function lastingContract(contract: {
  readonly title: string;
  readonly test: typeof test | typeof test.skip;
  readonly exempt: LastingExemptions;
  subject(): LastingSubject;
}): void {
  describe(contract.title, () => {
    const held = Object.entries(LASTING).filter(([name]) => !Object.hasOwn(contract.exempt, name));
    for (const [name, check] of held) contract.test(`[RS-22] ${name}`, () => check(contract.subject()));
  });
}
