import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BaseStore } from './base-store.ts';
import type { HostGit } from './host-git.ts';
import { ScratchRepository, sealedWorker, writeFiles } from './scratch-repository.double.ts';

let repository: ScratchRepository;
let git: HostGit;
let base: BaseStore;
let first: string;

beforeEach(async () => {
  repository = await ScratchRepository.make();
  git = await repository.open();
  first = await git.run(['rev-parse', 'HEAD']);
  base = new BaseStore(git, join(repository.root, '.mahabharatha/cells/shop/base.git'));
});
afterEach(() => repository[Symbol.asyncDispose]());

const objectsOf = async (): Promise<string[]> =>
  (
    await git.run(['cat-file', '--batch-all-objects', '--batch-check=%(objectname)'], {
      env: { GIT_DIR: base.folder },
    })
  )
    .split('\n')
    .toSorted();

test('[FL-09] has the history of one commit and nothing else of the repository', async () => {
  await repository.user(['checkout', '--quiet', '-b', 'private']);
  await repository.write({ password: 'hunter2' });
  await repository.save('secret');
  await repository.user(['tag', 'v1']);
  await repository.user(['checkout', '--quiet', 'main']);
  await repository.write({ dropped: 'x' });
  await repository.user(['stash', '--quiet', '--include-untracked']);
  const before = await repository.untouchables();
  await base.bring(first);
  const reachable = await repository.user(['rev-list', '--objects', '--no-object-names', first]);
  expect(await objectsOf()).toEqual(reachable.split('\n').toSorted());
  expect(await git.run(['for-each-ref', '--format=%(refname)'], { env: { GIT_DIR: base.folder } })).toBe(
    'refs/heads/history',
  );
  expect(await repository.untouchables()).toEqual(before);
});

test('[FL-05] a later commit adds what is new, for all who ask at once', async () => {
  await base.bring(first);
  await repository.write({ later: 'x' });
  const later = await repository.save('later');
  await Promise.all([base.bring(later), base.bring(later), base.bring(first), base.bring(later)]);
  expect(await base.commit()).toBe(later);
  const reachable = await repository.user(['rev-list', '--objects', '--no-object-names', later]);
  expect(await objectsOf()).toEqual(reachable.split('\n').toSorted());
  await base.remove();
  await expect(stat(base.folder)).rejects.toThrow(/ENOENT/);
});

test('[FL-05] a commit that is on no branch can be brought, one that is nowhere cannot', async () => {
  await repository.user(['checkout', '--quiet', '--detach']);
  await repository.user(['config', 'protocol.version', '0']);
  await repository.write({ loose: 'x' });
  const loose = await repository.save('loose');
  await repository.user(['checkout', '--quiet', 'main']);
  await base.bring(loose);
  expect(await base.commit()).toBe(loose);
  await expect(base.bring('1'.repeat(40))).rejects.toMatchObject({ code: 'FLEET_GIT' });
  await expect(base.bring('--upload-pack=x')).rejects.toThrow(/not the name of a commit/);
  expect(await base.commit()).toBe(loose);
});

test('[FL-15] what a crash left of it is mended', async () => {
  await mkdir(join(base.folder, 'objects/pack'), { recursive: true });
  await writeFile(join(base.folder, 'objects/pack/tmp_pack_x'), 'half');
  await base.bring(first);
  await rm(join(base.folder, 'HEAD'));
  for (const lock of ['config.lock', 'refs/heads/history.lock']) await writeFile(join(base.folder, lock), '');
  await repository.write({ later: 'x' });
  const later = await repository.save('later');
  await base.bring(later);
  expect(await base.commit()).toBe(later);
});

test('[FL-09] others can read it, and only read', async () => {
  await base.bring(first);
  const names = await readdir(base.objects, { recursive: true });
  const modes = await Promise.all(
    names.map(async (name) => (await stat(join(base.objects, name))).mode & 0o7),
  );
  expect([...new Set(modes)].every((mode) => (mode & 0o4) !== 0 && (mode & 0o2) === 0)).toBe(true);
});

test('[FL-01] a shallow clone serves as well', async () => {
  await repository.write({ second: 'x' });
  await repository.save('second');
  await repository.write({ third: 'x' });
  await repository.save('third');
  const clone = join(repository.folder, 'clone');
  await repository.user(['clone', '--quiet', '--depth', '2', `file://${repository.root}`, clone]);
  await rm(repository.root, { recursive: true });
  await repository.user(
    ['clone', '--quiet', '--depth', '2', `file://${clone}`, repository.root],
    repository.folder,
  );
  const worker = await sealedWorker(repository);
  await worker.place.prepare();
  await worker.place.settle(worker.run);
  expect(await worker.agent(['log', '--format=%s'])).toBe('third\nsecond');
  await writeFiles(worker.worktree, { made: 'x' });
  await worker.place.commit(worker.run, 'made', { allowEmpty: false });
  expect((await worker.place.takeCommits(worker.run)).files).toEqual(['made']);
  await repository.user(['fsck', '--strict']);
});

test('[FL-01] so does a repository with the longer hashes', async () => {
  await using long = await ScratchRepository.make({ init: ['--object-format=sha256'] });
  const worker = await sealedWorker(long);
  await worker.place.prepare();
  await worker.place.settle(worker.run);
  await writeFiles(worker.worktree, { made: 'x' });
  await worker.place.commit(worker.run, 'made', { allowEmpty: false });
  const { commit, files } = await worker.place.takeCommits(worker.run);
  expect(files).toEqual(['made']);
  expect(commit).toHaveLength(64);
});
