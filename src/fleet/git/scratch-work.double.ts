import { join } from 'node:path';
import { featureBranch, workerBranch } from '../names.ts';
import { mergeInto } from './merge-branches.ts';
import { ScratchRepository, linkedWorker, sealedWorker, writeFiles } from './scratch-repository.double.ts';

/**
 * For tests, as a process that can be killed: the git of one task from beginning to end, in a repository that is there. Does
 * what an orchestrator does that does not know how far an earlier one came.
 * Arguments: folder, `sealed` or `linked`, and where programs are found.
 */
const [folder = '', kind = '', path = ''] = process.argv.slice(2);
const AUTHOR = { name: 'Ada', email: 'ada@example.org' };
const repository = new ScratchRepository(folder, path);
const worker = kind === 'sealed' ? await sealedWorker(repository) : await linkedWorker(repository);
const { place, git, run, worktree } = worker;
await place.prepare();
await place.settle(run);
const subject = await git.run(['log', '-1', '--format=%s', await place.head()]);
if (subject !== 'work') {
  await writeFiles(worktree, { 'a.txt': 'worked\n', [join('deep', 'made')]: 'x' });
  await place.commit(run, 'work', { allowEmpty: false });
  await place.takeCommits(run);
}
const ref = featureBranch('shop');
const merged = await mergeInto(git, {
  ref,
  branch: workerBranch('shop', 0),
  message: 'Merge\n',
  author: AUTHOR,
});
if (merged.kind === 'conflict') throw new Error(merged.message);
await place.moveTo(run, merged.commit);
