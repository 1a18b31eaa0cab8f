import { expect, test } from 'vitest';
import { FleetConfig } from '../fleet-config.ts';
import { adviseOnSpace, explainNoSpace, findOvergrowth } from './disk-watch.ts';

const config = FleetConfig.parse({ resources: { worktree_disk: '64m', container_tmp: '512m' } });
const git = { sizeOnDisk: () => Promise.resolve(1) };
const roomThatIs = (full: boolean) => ({ isFull: () => Promise.resolve(full) });
const LATE = new Error('npm: ENOSPC: no space left on device, write');

test('[FL-07] a full file system is the failure of its worktree, by the name of the setting', async () => {
  const message = 'no space is left in the worktree, and resources.worktree_disk is 67.1 MB';
  expect(await findOvergrowth({ git, config, room: roomThatIs(true) })).toMatchObject({
    code: 'WORKTREE_TOO_LARGE',
    message,
    hint: expect.stringContaining('Raise resources.worktree_disk'),
  });
  expect(await findOvergrowth({ git, config, room: roomThatIs(false) })).toBeUndefined();
  expect(explainNoSpace({ git, config, room: roomThatIs(false) }, LATE)).toMatchObject({
    code: 'WORKTREE_TOO_LARGE',
    message: `${message}: ${LATE.message}`,
  });
});

test('[FL-07] who has made room again is told of both bounds; without a file system of its own nothing is', () => {
  const room = roomThatIs(false);
  expect(adviseOnSpace({ config, room }, LATE.message)).toBe(
    `${LATE.message}\nOf space, the worktree may take 67.1 MB (resources.worktree_disk), and /tmp 537 MB (resources.container_tmp)`,
  );
  expect(adviseOnSpace({ config, room }, 'tests failed')).toBe('tests failed');
  expect(adviseOnSpace({ config }, LATE.message)).toBe(LATE.message);
  expect(explainNoSpace({ git, config }, LATE)).toBe(LATE);
});
