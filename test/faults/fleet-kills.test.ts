import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect } from 'vitest';
import { Deck, below, makeDice, type Dice } from '../soak/dice.ts';
import { howOften } from '../support/endurance.ts';
import type { FleetCommand } from '../support/fleet-command.ts';
import { setGitTrap } from '../support/fleet-git-trap.ts';
import { untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask, type Step } from '../support/fleet-repository.ts';
import { WAYS, startFleet, type WayName } from '../support/fleet-ways.ts';
import { processesIn } from '../support/footprint.ts';
import { isInit } from '../support/kill-cell.ts';
import { waitFor } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';
import { descendantsOf, listAll, signalAll, type SeenProcess } from '../support/processes.ts';

/** Other seeds have other moments. */
const SEED = 12;
/** About as long as such a fleet takes: some kills come before anything was done, some after all of it. */
const LONGEST_PAUSE_MS = 2000;

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** As long as it takes to look for an agent and to kill it. */
const WORK: Step[] = [['work', 200]];
const IDS = ['A', 'B', 'C', 'D', 'E', 'F'];
/** However often it is killed: nothing is given up. */
const WITHOUT_END = { retry_attempts: 100, spawn_retry_attempts: 100, max_respawn_attempts: 1000 };

/** Two levels; the second one sees all of the first. */
function make(): FleetRepository {
  const tasks = IDS.map((id) =>
    id < 'D'
      ? toTask(id, 1, WORK)
      : toTask(id, 2, WORK, { verification: { command: `test "$(ls out/[ABC].txt | wc -l)" = 3` } }),
  );
  return stack.use(FleetRepository.make({ tasks, config: { workers: WITHOUT_END } }));
}

/** What of a running fleet can be killed: who it is at this moment. */
type Find = (command: FleetCommand) => SeenProcess[];
const among = (command: FleetCommand, words: string): SeenProcess[] =>
  [...descendantsOf(command.pid), ...inCells(command)].filter((one) => one.words.includes(words));

function inCells({ instances }: FleetCommand): SeenProcess[] {
  const pids = new Set(processesIn([...instances].map((id) => `/hotcell/${id}/`)));
  return listAll().filter(({ pid }) => pids.has(pid));
}

const VICTIMS = {
  orchestrator: (command) => listAll().filter(({ pid }) => pid === command.pid),
  agent: (command) => among(command, 'agent.mjs'),
  init: (command) => inCells(command).filter((one) => isInit(one)),
  keeper: (command) => among(command, 'keeper.bash'),
} satisfies Record<string, Find>;
type Victim = keyof typeof VICTIMS;

/** Whatever happened on the way: every task is done, each by one commit, and nothing is left. */
async function expectRight(
  repository: FleetRepository,
  way: WayName,
  { commands, done }: Led,
): Promise<void> {
  const { tasks } = repository.readState();
  expect(IDS.map((id) => `${id} ${tasks[id]?.status}`)).toEqual(IDS.map((id) => `${id} complete`));
  expect(repository.committed()).toEqual(IDS);
  // What was done when somebody was killed was not done again.
  expect(Object.fromEntries([...done.keys()].map((id) => [id, tasks[id]?.commit]))).toEqual(
    Object.fromEntries(done),
  );
  for (const id of IDS) expect(repository.report(id).task).toBe(id);
  expect(repository.lostCommits()).toEqual([]);
  expect(repository.git('fsck', '--no-dangling')).toBe('');
  await untilNothingIsLeft(repository, commands, WAYS[way].engine);
}

/** All orchestrators of a fleet, and the commits of the tasks that were done when one of them was killed. */
interface Led {
  readonly commands: FleetCommand[];
  readonly done: Map<string, string>;
}

function noteDone(repository: FleetRepository, done: Led['done']): void {
  if (!repository.hasState()) return;
  for (const [id, { status, commit }] of Object.entries(repository.readState().tasks))
    if (status === 'complete') done.set(id, commit ?? '');
}

/** From its beginning to its end: who is killed goes on at once. `harass` gets each orchestrator, and returns when it is over. */
async function leadThrough(
  repository: FleetRepository,
  start: (verb: string) => FleetCommand,
  harass: (command: FleetCommand, noted: () => void) => Promise<void>,
): Promise<Led> {
  const led: Led = { commands: [], done: new Map() };
  for (;;) {
    const command = stack.use(start(repository.hasState() ? 'resume' : 'kurukshetra'));
    led.commands.push(command);
    await harass(command, () => noteDone(repository, led.done));
    const { code, signal, stderr } = await command.ended;
    noteDone(repository, led.done);
    if (signal === 'SIGKILL') continue;
    expect({ code, signal, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, signal: null, stderr: '' });
    return led;
  }
}

describe('kill -9 at any moment', { timeout: 1_800_000 }, () => {
  const AT_RANDOM: readonly { readonly way: WayName; readonly victims: readonly Victim[] }[] = [
    { way: 'oci', victims: ['orchestrator', 'init', 'agent', 'keeper'] },
    { way: 'subprocess', victims: ['orchestrator', 'agent'] },
  ];
  const kills = howOften(8, 100);
  for (const { way, victims } of AT_RANDOM)
    testThatNeeds(WAYS[way].missing)(
      `[FL-12, FL-15] ${kills} times, ${victims.join(', ')} (${way}): every task is committed once`,
      async () => {
        const dice = makeDice(SEED);
        const deck = new Deck(
          victims.map((victim) => [victim, 1]),
          dice,
        );
        const killed: Victim[] = [];
        while (killed.length < kills) {
          const repository = make();
          const led = await leadThrough(
            repository,
            (verb) => startFleet(repository, way, [verb]),
            async (command, noted) => {
              while (killed.length < kills && (await isStillThereAfter(command, dice() * LONGEST_PAUSE_MS))) {
                const victim = deck.draw();
                noted();
                if (await kill(command, victim, dice)) killed.push(victim);
                if (victim === 'orchestrator') return;
              }
            },
          );
          await expectRight(repository, way, led);
        }
        // Each of them, or the moments were not those of a fleet that works.
        expect(new Set(killed)).toEqual(new Set(victims));
      },
    );

  const every = howOften(24, 2);
  for (const way of ['oci', 'subprocess'] as const)
    testThatNeeds(WAYS[way].missing)(
      `[FL-12, FL-15] of the orchestrator, each time ${every} calls of git later (${way}): every task is committed once`,
      async () => {
        const repository = make();
        let call = 0;
        const led = await leadThrough(
          repository,
          (verb) => {
            const when = (call / every) % 2 === 0 ? 'before' : 'after';
            const { path } = setGitTrap(repository, { words: '', when, skip: call });
            call += every;
            return startFleet(repository, way, [verb], { PATH: path });
          },
          () => Promise.resolve(),
        );
        expect(led.commands.length).toBeGreaterThan(3);
        await expectRight(repository, way, led);
      },
    );
});

/** The moment is the fault: nothing is waited for but the end of what is to be killed. */
async function isStillThereAfter(command: FleetCommand, ms: number): Promise<boolean> {
  const late = new AbortController();
  await Promise.race([command.ended, sleep(ms, undefined, { signal: late.signal }).catch(() => {})]);
  late.abort();
  return command.isRunning;
}

/** One of those who are there, as soon as there is one; false: the fleet has ended before. */
async function kill(command: FleetCommand, victim: Victim, dice: Dice): Promise<boolean> {
  let found: SeenProcess[] = [];
  await waitFor(
    `there is somebody to kill: ${victim}`,
    () => !command.isRunning || (found = VICTIMS[victim](command)).length > 0,
  );
  const one = found[below(dice, found.length)];
  if (one === undefined) return false;
  signalAll([one.pid], 'SIGKILL');
  return true;
}
