import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chownSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { PROMISES } from '../../src/core/enforcement.ts';
import { howOften } from '../support/endurance.ts';
import { FleetCommand, OCI } from '../support/fleet-command.ts';
import { untilNothingIsLeft } from '../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { isInit } from '../support/kill-cell.ts';
import { findTraces, waitFor } from '../support/leftovers.ts';
import { countMarked, expectServes, makeMarker, settle, startServer } from '../support/live-server.ts';
import { testThatNeeds } from '../support/needs.ts';
import { NOBODY, Nobody, whyNoNobody } from '../support/nobody.ts';
import { descendantsOf, isAlive, signalAll, type SeenProcess } from '../support/processes.ts';
import { OCI_FRESH, OCI_SHARED } from '../support/served-by.ts';

/** Somebody who is not root has no cgroups here: what is left of cells is known by who started it. */
const rootlessTest = testThatNeeds(whyNoNobody());
const WEAKER = { HOTCELL_WEAKER: PROMISES.join(',') };

const isRuntime = ({ words }: SeenProcess): boolean => /^\S*crun .* run /.test(words);

/** Whoever has been started, also by somebody who has ended since. */
class Followed {
  readonly ancestor: number;
  readonly #seen = new Map<string, SeenProcess>();

  constructor(ancestor: number) {
    this.ancestor = ancestor;
  }

  look(): SeenProcess[] {
    const found = descendantsOf(this.ancestor);
    for (const seen of found) this.#seen.set(`${seen.pid} ${seen.startedAt}`, seen);
    return found;
  }

  alive(): string[] {
    return [...this.#seen.values()].filter((seen) => isAlive(seen)).map(({ words }) => words);
  }
}

/** How much it has written, as far as the kernel still knows. */
function writtenBy({ pid }: SeenProcess): string {
  try {
    return readFileSync(`/proc/${pid}/io`, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Kills this process of every cell while the one that leads does not get the processor, and the pipes are full: so it learns of
 * the end of a cell and of its runtime in one moment, and has not read yet what the cell had said.
 */
async function killUnseen(
  followed: Followed,
  kind: (seen: SeenProcess) => boolean,
  meanwhile: () => void = () => {},
): Promise<number> {
  process.kill(followed.ancestor, 'SIGSTOP');
  try {
    const all = followed.look().filter((seen) => isInit(seen) || isRuntime(seen));
    let before = '';
    await waitFor('the cells have nothing more to say, or wait to be read', () => {
      const last = before;
      before = all.map((seen) => writtenBy(seen)).join();
      return before === last;
    });
    const doomed = all.filter((seen) => kind(seen));
    const lost = all.filter(({ pid }) => doomed.some((seen) => seen.pid === pid || seen.parent === pid));
    signalAll(
      doomed.map(({ pid }) => pid),
      'SIGKILL',
    );
    await waitFor('they have ended', () => !lost.some((seen) => isAlive(seen)));
    meanwhile();
    return doomed.length;
  } finally {
    process.kill(followed.ancestor, 'SIGCONT');
  }
}

const REQUESTS = [
  { language: 'bash', body: { code: 'echo fine' }, right: { stdout: 'fine\n', exit_code: 0 } },
  {
    language: 'bash',
    body: { code: 'while :; do echo loud; done', timeout_ms: 1000 },
    right: { exit_code: 124 },
  },
  {
    language: 'python',
    body: { code: 'while True: print("loud")', timeout_ms: 1000 },
    right: { exit_code: 124 },
  },
  { language: 'python', body: { code: 'print(6 * 7)' }, right: { stdout: '42\n', exit_code: 0 } },
] as const;

describe.each([OCI_FRESH, OCI_SHARED])('a server without root, $name', (way) => {
  const ROUNDS = howOften(5, 40);
  rootlessTest(
    `[SC-02, CX-16] ${ROUNDS} rounds of runs while cells are killed: it lives, serves, and leaves nothing`,
    { timeout: 120_000 + ROUNDS * 20_000 },
    async () => {
      using nobody = new Nobody();
      await using server = await startServer({
        way,
        languages: ['bash', 'python'],
        stateDirectory: nobody.state,
        program: nobody.command('src/cli/main.ts'),
        env: { ...nobody.env, ...WEAKER },
      });
      const followed = new Followed(server.process.pid ?? 0);
      const marker = makeMarker();
      let killed = 0;
      for (let round = 0; round < ROUNDS; round++) {
        await settle(server);
        const left = {
          language: 'bash',
          body: { code: `sleep ${marker} & echo left` },
          right: { exit_code: 0 },
        };
        const running = [...REQUESTS, left].map(async ({ language, body, right }) => ({
          right,
          answer: await server.execute(language, body),
        }));
        // At a moment of its own each time: before anything has begun, or amid it.
        await sleep(randomInt(0, 200));
        killed += await killUnseen(followed, [isInit, isRuntime][round % 2] ?? isInit);
        for (const { right, answer } of await Promise.all(running)) {
          const { status, body } = answer;
          if (status === 200) expect(body).toMatchObject(right);
          else expect({ status, ...body }).toMatchObject({ status: 503, code: 'CELL_LOST', exit_code: -1 });
        }
        await expectServes(server);
        followed.look();
      }
      expect(killed).toBeGreaterThan(0);
      await settle(server);
      followed.look();
      expect(await server.stop()).toBe(0);
      await waitFor('nothing of it runs', () => followed.alive().length === 0 && countMarked(marker) === 0);
      expect(findTraces(nobody.state)).toEqual({ processes: [], cgroups: [], mounts: [], folders: [] });
      expect(server.output).not.toContain('removal failed');
    },
  );
});

/** As if nobody had made it; root may look into it all the same. */
function giveToNobody(repository: FleetRepository): void {
  writeFileSync(join(repository.home, '.gitconfig'), '[safe]\n\tdirectory = *\n');
  execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, dirname(repository.root), repository.state]);
}

describe('a fleet without root', () => {
  const LOUD = ['A', 'B', 'C'];
  const FLEETS = howOften(3, 20);
  rootlessTest(
    `[SC-02, FL-11, FL-12] ${FLEETS} fleets whose cells are killed amid their work: all is done once, and nothing left`,
    { timeout: 120_000 + FLEETS * 60_000 },
    async () => {
      using nobody = new Nobody();
      const [program, ...words] = nobody.command('src/cli/main.ts');
      for (let fleet = 0; fleet < FLEETS; fleet++) {
        using repository = FleetRepository.make({
          tasks: [...LOUD.map((id) => toTask(id, 1, [['sayUntil', 'go']])), toTask('D', 2)],
        });
        giveToNobody(repository);
        await using command = FleetCommand.start(
          repository,
          [...words, 'mahabharatha', 'kurukshetra', ...OCI, '--workers', '3'],
          { program, env: { PATH: nobody.env['PATH'] ?? '', ...WEAKER } },
        );
        const followed = new Followed(command.pid);
        for (const id of LOUD) await repository.untilAnnounced(id);
        await killUnseen(followed, isInit, () => {
          repository.mark('go');
          for (const folder of repository.worktrees()) chownSync(join(folder, 'marks/go'), NOBODY, NOBODY);
        });
        const look = setInterval(() => followed.look(), 200);
        const { code, signal, stderr } = await command.ended.finally(() => clearInterval(look));
        expect({ fleet, code, signal, stderr: code === 0 ? '' : stderr }).toEqual({
          fleet,
          code: 0,
          signal: null,
          stderr: '',
        });
        expect(stderr).not.toContain('removal failed');
        for (const id of LOUD)
          expect(repository.task(id)).toMatchObject({ status: 'complete', retry_count: 0, losses: 1 });
        expect(repository.countCommits()).toEqual({ A: 1, B: 1, C: 1, D: 1 });
        await waitFor('nothing of it runs', () => followed.alive().length === 0);
        await untilNothingIsLeft(repository, [command]);
      }
    },
  );
});
