import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { readResidentBytes } from '../support/live-server.ts';
import { checkLedger } from './ledger-check.ts';
import { describeGrowth, growthOf, toMiB, type Sample } from './memory.ts';
import { openWorld } from './open-world.ts';
import { makePlan, type SoakDriver } from './plan.ts';
import { findOrphans, rest } from './remains.ts';
import { performRound, toWrong, type Wrong } from './round.ts';
import { SessionSource } from './session-source.ts';
import { closeWorld } from './close-world.ts';
import type { World } from './world.ts';

export interface SoakOptions {
  readonly seed: number;
  readonly driver: SoakDriver;
  /** It ends after the round that is under way then; a whole one unless `rounds` are done before. */
  readonly minutes: number;
  readonly rounds?: number;
  readonly tell: (line: string) => void;
  /** How often a line tells how far it is; each minute unless a test is in a hurry. */
  readonly tellEveryMs?: number;
  /** Ends it amid a round. */
  readonly signal?: AbortSignal;
  /** Between the acts of a round and its check: for tests that spoil something. */
  readonly meddle?: (world: World, round: number) => Promise<void>;
}

export interface Verdict {
  readonly wrong: readonly Wrong[];
  readonly rounds: number;
  readonly acts: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly excused: number;
  readonly acknowledged: number;
  readonly servers: number;
  /** Of servers that lived long enough, in MiB: at the beginning and at the end. */
  readonly memory: readonly (readonly [number, number])[];
  /** Where the log and the data of the server are, if something is wrong. */
  readonly kept: string | undefined;
}

/** What has happened so far. */
class Account {
  readonly wrong: Wrong[] = [];
  readonly acts: Record<string, number> = {};
  readonly faults: Record<string, number> = {};
  readonly lives: Sample[][] = [];
  rounds = 0;
  excused = 0;

  count(kinds: readonly { readonly kind: string }[], into: Record<string, number>): void {
    for (const { kind } of kinds) into[kind] = (into[kind] ?? 0) + 1;
  }
}

/** Runs a plan until its time is over or something is wrong. */
export async function soak(options: SoakOptions): Promise<Verdict> {
  const { seed, driver, rounds: most = Number.POSITIVE_INFINITY } = options;
  await using stack = new AsyncDisposableStack();
  const world = await openWorld(stack, driver, seed);
  const account = new Account();
  const deadline = performance.now() + options.minutes * 60_000;
  stack.use(tellByTheClock(options, () => describeAccount(world, account)));
  const interrupted = untilAborted(options.signal);
  interrupted.catch(() => {});
  try {
    await world.start();
    for (const round of makePlan(seed, driver)) {
      const { wrong, excused } = await Promise.race([performRound(world, round), interrupted]);
      account.count(round.acts, account.acts);
      account.count(round.faults, account.faults);
      account.excused += excused;
      account.wrong.push(...wrong);
      await options.meddle?.(world, round.number);
      account.wrong.push(...(await checkRound(world, round.number, account)));
      account.rounds++;
      const isOver = performance.now() > deadline || account.rounds >= most;
      if (isOver || account.wrong.length > 0) break;
    }
  } catch (error) {
    account.wrong.push(toWrong(world, account.rounds, 'the soak', error));
  }
  account.wrong.push(...judgeMemory(world, account));
  const { wrong, kept } = await closeWorld(world, account.rounds, account.wrong.length > 0);
  account.wrong.push(...wrong);
  return toVerdict(world, account, kept);
}

/** Whatever hangs: who reads along sees that nothing is done any more. */
function tellByTheClock({ tell, tellEveryMs = 60_000 }: SoakOptions, describe: () => string): Disposable {
  const begun = performance.now();
  const timer = setInterval(() => {
    const minute = Math.round((performance.now() - begun) / 60_000);
    tell(`minute ${minute}: ${describe()}`);
  }, tellEveryMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  if (signal === undefined) return new Promise(() => {});
  if (!signal.aborted) await once(signal, 'abort');
  throw new Error('interrupted');
}

/** Everything is there and nothing else, once all faults of a round are healed. */
async function checkRound(world: World, round: number, account: Account): Promise<Wrong[]> {
  const wrong: Wrong[] = [];
  const check = async (where: string, look: () => Promise<readonly string[]>): Promise<void> => {
    try {
      for (const words of await look()) wrong.push(toWrong(world, round, where, new Error(words)));
    } catch (error) {
      wrong.push(toWrong(world, round, where, error));
    }
  };
  world.troubles.clear();
  await check('rest', () => rest(world).then(() => []));
  await check('ledger', () => checkLedger(world.ledger, new SessionSource(world)));
  await check('orphans', () => findOrphans(world, account.wrong.length + wrong.length > 0));
  await check('memory', async () => {
    const life = (account.lives[world.lives - 1] ??= []);
    const descriptors = readdirSync(`/proc/${world.server.process.pid}/fd`).length;
    life.push({ residentBytes: await readResidentBytes(world.server), descriptors });
    return [];
  });
  return wrong;
}

function judgeMemory(world: World, { lives, rounds }: Account): Wrong[] {
  return lives.flatMap((life) => {
    const growth = growthOf(life);
    const words = growth === undefined ? undefined : describeGrowth(growth);
    return words === undefined ? [] : [toWrong(world, rounds, 'memory', new Error(words))];
  });
}

function toVerdict(world: World, account: Account, kept: string | undefined): Verdict {
  const { wrong, rounds, acts, faults, excused, lives } = account;
  const memory = lives.flatMap((life) => {
    const growth = growthOf(life);
    return growth === undefined
      ? []
      : [[toMiB(growth.first.residentBytes), toMiB(growth.last.residentBytes)] as const];
  });
  const { acknowledged } = world.ledger;
  return { wrong, rounds, acts, faults, excused, acknowledged, servers: world.lives, memory, kept };
}

function describeAccount(world: World, account: Account): string {
  const { rounds, acts, faults, excused, wrong, lives } = account;
  const { residentBytes = 0, descriptors = 0 } = lives[world.lives - 1]?.at(-1) ?? {};
  return [
    `${rounds} rounds`,
    `acts ${describeCounts(acts)} (${excused} excused)`,
    `faults ${describeCounts(faults)}`,
    `server ${world.lives} has ${toMiB(residentBytes)} MiB and ${descriptors} descriptors`,
    `${world.ledger.sessions.size} sessions, ${world.ledger.acknowledged} acknowledged`,
    `${wrong.length} wrong`,
  ].join('; ');
}

/** The sum, and of what. */
export function describeCounts(counts: Readonly<Record<string, number>>): string {
  const sum = Object.values(counts).reduce((total, count) => total + count, 0);
  const parts = Object.entries(counts).map(([kind, count]) => `${kind} ${count}`);
  return `${sum} [${parts.join(', ')}]`;
}
