import { spawn } from 'node:child_process';
import { globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openSession } from '../soak/acts/held-session.ts';
import { toMarker } from '../soak/markers.ts';
import { soak } from '../soak/soak.ts';
import type { World } from '../soak/world.ts';
import { waitFor } from '../support/leftovers.ts';
import { isRoot, testThatNeeds } from '../support/needs.ts';

const test = testThatNeeds(isRoot ? undefined : 'a soak needs root');
/** Whose first rounds have nearly everything but a fleet, and the server killed in each. */
const SEED = 9;

test('[SC-06] three rounds with the server killed in each: clean', async () => {
  const lines: string[] = [];
  const verdict = await soak({
    seed: SEED,
    driver: 'oci',
    minutes: 10,
    rounds: 3,
    tell: (line) => void lines.push(line),
    tellEveryMs: 50,
    // Lines come by the clock, also while nothing gets on.
    meddle: async () => {
      const told = lines.length;
      await waitFor('two more lines', () => lines.length >= told + 2);
    },
  });
  expect(verdict.wrong).toEqual([]);
  expect(verdict).toMatchObject({ rounds: 3, servers: 4, faults: { 'kill-server': 3 }, kept: undefined });
  expect(verdict.acknowledged).toBeGreaterThan(10);
  expect(lines.at(-1)).toMatch(
    /^minute \d+: [23] rounds; acts .*; faults \d+ \[.*kill-server 3.*\]; .*; 0 wrong$/,
  );
});

const STRAY = toMarker(999_999);

/** Behind the ledger's back: a session goes, a file goes, a program stays. */
async function spoil(world: World, stack: DisposableStack): Promise<void> {
  const lost = await openSession(world, 'lost', 0);
  await lost.hand.remove();
  const { hand, entry } = await openSession(world, 'robbed', 1);
  await hand.get('POST', '/upload', { files: [{ path: 'kept.txt', content: 'work' }] });
  world.ledger.addFile(entry, 'kept.txt', 'work');
  for (const file of globSync(join(world.dataDirectory, 'volumes/*/robbed/kept.txt'))) rmSync(file);
  const stray = spawn('sleep', [STRAY]);
  stack.defer(() => stray.kill('SIGKILL'));
}

test('[SC-06] what is lost or left over is told, and the verdict is not clean', async () => {
  using stack = new DisposableStack();
  const meddle = (world: World): Promise<void> => spoil(world, stack);
  const options = { seed: SEED, driver: 'oci', minutes: 10, rounds: 1, tell: () => {}, meddle } as const;
  const { wrong, kept } = await soak(options);
  stack.defer(() => kept !== undefined && rmSync(kept, { recursive: true }));
  expect(wrong.map(({ round, where, words }) => `${round} ${where}: ${words}`)).toEqual([
    expect.stringMatching(/^0 ledger: session \S+ of lane 0 was acknowledged and is lost$/),
    expect.stringMatching(/^0 ledger: session \S+: file kept\.txt is gone$/),
    `0 orphans: program ${STRAY}`,
  ]);
});
