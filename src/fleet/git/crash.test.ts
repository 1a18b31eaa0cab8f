import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ScratchRepository, linkedWorker, sealedWorker } from './scratch-repository.double.ts';

const WORK = fileURLToPath(new URL('scratch-work.double.ts', import.meta.url));
const PATH = '/usr/local/bin:/usr/bin:/bin';
const STAGING = 'mahabharatha/shop/staging';

let repository: ScratchRepository;
beforeEach(async () => {
  repository = await ScratchRepository.make();
  await repository.user(['branch', STAGING]);
});
afterEach(() => repository[Symbol.asyncDispose]());

/**
 * A git that counts its calls, and kills everything around it at one of them: before the real one begins, while it works,
 * or when it is done.
 */
async function makeDeadlyGit(fatalCall: number): Promise<string> {
  const bin = join(repository.folder, 'bin');
  const count = join(repository.folder, 'count');
  await rm(count, { force: true });
  await mkdir(bin, { recursive: true });
  const script = `#!/bin/bash
exec 9>> ${count}
flock 9
echo >&9
calls=$(wc -l < ${count})
exec 9>&-
if [ "$calls" -ne ${fatalCall} ]; then exec /usr/bin/git "$@"; fi
case $((calls % 3)) in
  0) ;;
  1) /usr/bin/git "$@" & for i in $(seq 200); do :; done ;;
  2) /usr/bin/git "$@" > /dev/null ;;
esac
kill -KILL 0
`;
  await writeFile(join(bin, 'git'), script, { mode: 0o755 });
  return `${bin}:${PATH}`;
}

/** In a process group of its own, which the deadly git takes down as a whole. */
async function work(kind: string, path: string): Promise<{ signal: unknown; errors: string; calls: number }> {
  const child = spawn(process.execPath, [WORK, repository.folder, kind, path], {
    detached: true,
    env: { PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  const count = await readFile(join(repository.folder, 'count'), 'utf8').catch(() => '');
  return { signal: signal ?? code, errors, calls: count.length };
}

async function expectDone(kind: string, before: Record<string, string>): Promise<void> {
  expect(await repository.user(['show', `${STAGING}:a.txt`])).toBe('worked');
  expect(await repository.user(['ls-tree', '-r', '--name-only', STAGING])).toContain('deep/made');
  const branch = await repository.user(['rev-parse', 'mahabharatha/shop/worker-0']);
  expect(branch).toBe(await repository.user(['rev-parse', STAGING]));
  const worktree = join(repository.root, '.mahabharatha-worktrees/shop/worker-0');
  expect(await repository.user(['status', '--porcelain'], worktree)).toBe('');
  expect(await readFile(join(worktree, 'a.txt'), 'utf8')).toBe('worked\n');
  await repository.user(['fsck', '--strict', '--no-dangling']);
  expect(await repository.user(['status', '--porcelain'])).toBe('');
  const worker = kind === 'sealed' ? await sealedWorker(repository) : await linkedWorker(repository);
  await worker.place.remove();
  expect(await repository.untouchables()).toEqual(before);
  expect(existsSync(join(repository.root, '.git/worktrees'))).toBe(false);
  expect(globSync('.git/{,refs/**/}*.lock', { cwd: repository.root })).toEqual([]);
  expect(await readdir(join(repository.root, '.mahabharatha-worktrees/shop'))).toEqual([]);
}

test.each([
  ['sealed', 23],
  ['linked', 23],
] as const)(
  '[FL-11] [FL-15] %s: killed anywhere, the next start finishes it',
  async (kind, step) => {
    const before = await repository.untouchables();
    const whole = await work(kind, await makeDeadlyGit(0));
    expect(whole).toMatchObject({ signal: 0, errors: '' });
    await expectDone(kind, before);
    for (let call = 1; call <= whole.calls; call += step) {
      await repository[Symbol.asyncDispose]();
      repository = await ScratchRepository.make();
      await repository.user(['branch', STAGING]);
      const untouched = await repository.untouchables();
      expect(await work(kind, await makeDeadlyGit(call))).toMatchObject({ signal: 'SIGKILL' });
      // A second crash soon after the first.
      await work(kind, await makeDeadlyGit(call + 4));
      expect(await work(kind, PATH), `killed at call ${call}`).toMatchObject({ signal: 0, errors: '' });
      await expectDone(kind, untouched);
    }
  },
  240_000,
);
