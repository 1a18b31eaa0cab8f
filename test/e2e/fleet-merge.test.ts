import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCommand, SUBPROCESS, mahabharatha, type FleetEnd } from '../support/fleet-command.ts';
import { describeFleet, viewHost } from '../support/fleet-remains.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';

const stack = new DisposableStack();
let ended: { readonly first: FleetEnd; readonly second: FleetEnd };
let left: string[] = [];
/** After the first level of two, and after both. */
let half: FleetRepository;
let whole: FleetRepository;

beforeAll(async () => {
  const tasks = [toTask('A', 1), toTask('B', 1), toTask('C', 2)];
  whole = stack.use(FleetRepository.make({ tasks, files: { 'notes.txt': 'one\n' } }));
  const begin = FleetCommand.start(whole, ['kurukshetra', ...SUBPROCESS, '--workers', '2', '--level', '1']);
  const first = await begin.ended;
  half = stack.use(whole.copy());
  const resume = FleetCommand.start(whole, ['resume', ...SUBPROCESS]);
  ended = { first, second: await resume.ended };
  left = await describeFleet(whole, [begin, resume]);
});

afterAll(() => stack.dispose());

/** Every test works on a repository of its own. */
function copyOf(repository: FleetRepository): FleetRepository {
  const copy = stack.use(repository.copy());
  // Of the worktrees that there were when it was copied.
  copy.git('worktree', 'prune');
  return copy;
}

const filesOf = (repository: FleetRepository, commit: string): string[] =>
  repository.git('ls-tree', '-r', '--name-only', commit, 'out/').split('\n').filter(Boolean);

describe('a run in two parts', () => {
  test('[FL-05, FL-15] --level ends after that level, and resume goes on with the next one', () => {
    expect({ ...ended.first, stdout: '' }).toMatchObject({ code: 0 });
    expect(ended.first.stderr).toContain('level 1 is complete. hotcell fleet resume goes on.');
    expect(half.readState().tasks).toMatchObject({
      A: { status: 'complete' },
      B: { status: 'complete' },
      C: { status: 'pending' },
    });
    expect(ended.second).toMatchObject({ code: 0 });
    expect(whole.readState().tasks['C']).toMatchObject({ status: 'complete' });
    expect(whole.report('C').seen).toEqual(['A.txt', 'B.txt']);
    expect(whole.countCommits()).toEqual({ A: 1, B: 1, C: 1 });
    expect(left).toEqual([]);
  });

  test('[FL-06] the pause between them is in no time that is shown', async () => {
    const repository = copyOf(half);
    const day = 24 * 3_600_000;
    const { led_since: since, led_until: until } = repository.readState();
    const back = (time: string | null | undefined): string =>
      new Date(Date.parse(time ?? '') - day).toISOString();
    const times = { started_at: back(since), led_since: back(since), led_until: back(until) };
    repository.writeAll({
      '.mahabharatha/state/demo.json': JSON.stringify({ ...repository.readState(), ...times }),
    });
    const elapsed = async (): Promise<number> => {
      const { stdout } = await mahabharatha(repository, ['status', '--json']);
      return (JSON.parse(stdout) as { elapsed_ms: number }).elapsed_ms;
    };
    const first = await elapsed();
    expect(first).toBe(Date.parse(until ?? '') - Date.parse(since ?? ''));
    expect(first).toBeGreaterThan(0);
    const { code, stdout, stderr } = await mahabharatha(repository, ['resume', ...SUBPROCESS, '--json']);
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    const { totals } = JSON.parse(stdout) as { totals: { elapsedMs: number } };
    expect(totals.elapsedMs).toBeGreaterThan(first);
    expect(totals.elapsedMs).toBeLessThan(day);
    expect(await elapsed()).toBe(totals.elapsedMs);
  });

  test('[FL-15] resume has as many workers as the first run was told to have', async () => {
    expect(Object.keys(whole.readState().workers)).toEqual(['0', '1']);
    const repository = copyOf(half);
    const plan = async (...args: string[]): Promise<unknown> => {
      const { stdout } = await mahabharatha(repository, [
        'run',
        '--dry-run',
        '--json',
        ...SUBPROCESS,
        ...args,
      ]);
      return JSON.parse(stdout);
    };
    expect(await plan('--resume')).toMatchObject({ workers: 2 });
    expect(await plan('--resume', '--workers', '3')).toMatchObject({ workers: 3 });
    const said = await mahabharatha(repository, ['resume', ...SUBPROCESS, '--workers', '3']);
    expect(said).toMatchObject({ code: 0 });
    expect(repository.readState().asked_workers).toBe(3);
    // Whoever never said a number has that of the configuration.
    const silent = stack.use(
      FleetRepository.make({ tasks: [toTask('A', 1)], config: { workers: { max_concurrent: 1 } } }),
    );
    expect(await mahabharatha(silent, ['run', ...SUBPROCESS])).toMatchObject({ code: 0 });
    expect(silent.readState().asked_workers).toBe(null);
  });

  test('[FL-15] what is complete is not begun anew', async () => {
    const repository = copyOf(whole);
    const again = await mahabharatha(repository, ['kurukshetra', ...SUBPROCESS]);
    expect(again).toMatchObject({ code: 2, stdout: '' });
    expect(again.stderr).toContain('was begun before');
    expect(again.stderr).toContain('hotcell fleet resume --feature demo');
    const resumed = await mahabharatha(repository, ['resume', ...SUBPROCESS]);
    expect(resumed).toMatchObject({ code: 0 });
    expect(repository.countCommits()).toEqual({ A: 1, B: 1, C: 1 });
    expect(repository.git('worktree', 'list')).not.toContain('worker');
  });
});

describe('merge', () => {
  test('[FL-05] --dry-run says what would be merged, and changes nothing', async () => {
    const repository = copyOf(whole);
    const before = viewHost(repository);
    const { code, stdout } = await mahabharatha(repository, ['merge', '--dry-run']);
    expect(code).toBe(0);
    for (const id of ['A', 'B', 'C']) expect(stdout).toContain(`Mahabharatha [${id}]: Write out/${id}.txt`);
    expect(stdout).toContain('3 commits of mahabharatha/demo/staging would be merged into main.');
    expect(viewHost(repository)).toEqual(before);
  });

  test('[FL-05, FL-15] carries the feature into the branch it began on, and the files follow', async () => {
    const repository = copyOf(whole);
    const before = repository.git('rev-parse', 'main').trim();
    const { code, stdout, stderr } = await mahabharatha(repository, ['merge', '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const commit = repository.git('rev-parse', 'main').trim();
    expect(JSON.parse(stdout)).toMatchObject({ target: 'main', commit });
    expect(repository.git('rev-parse', 'main^1').trim()).toBe(before);
    expect(filesOf(repository, 'main')).toEqual(['out/A.txt', 'out/B.txt', 'out/C.txt']);
    expect(existsSync(join(repository.root, 'out/C.txt'))).toBe(true);
    expect(repository.git('status', '--porcelain')).toBe('');
    expect(repository.git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main');
    expect(repository.events()).toContain('merged_to_target');
    const again = await mahabharatha(repository, ['merge']);
    expect(again).toMatchObject({ code: 0, stdout: 'main has all of mahabharatha/demo/staging already.\n' });
    expect(repository.git('rev-parse', 'main').trim()).toBe(commit);
  });

  test('[FL-05] --target leads into another branch, and nothing else moves', async () => {
    const repository = copyOf(whole);
    repository.git('branch', 'develop');
    const before = viewHost(repository);
    const { code } = await mahabharatha(repository, ['merge', '--target', 'develop']);
    expect(code).toBe(0);
    expect(filesOf(repository, 'develop')).toHaveLength(3);
    expect(viewHost(repository)).toEqual(before);
    const unknown = await mahabharatha(repository, ['merge', '--target', 'no-such']);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('there is no branch no-such');
  });

  test('[FL-05] refuses to change files of the user, and names them; other changes stay', async () => {
    const repository = copyOf(whole);
    repository.writeAll({ 'notes.txt': 'changed\n', 'out/B.txt': 'of the user, not committed\n' });
    const dirty = viewHost(repository);
    const refused = await mahabharatha(repository, ['merge']);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('the merge would change files of yours: out/B.txt\n');
    expect(viewHost(repository)).toEqual(dirty);
    rmSync(join(repository.root, 'out/B.txt'));
    expect(await mahabharatha(repository, ['merge'])).toMatchObject({ code: 0 });
    expect(readFileSync(join(repository.root, 'notes.txt'), 'utf8')).toBe('changed\n');
    expect(repository.git('status', '--porcelain')).toBe(' M notes.txt\n');
  });

  test('[FL-05] a conflict changes nothing, and the commands that it names resolve it', async () => {
    const repository = copyOf(whole);
    repository.writeAll({ 'out/A.txt': 'written by hand meanwhile\n' });
    repository.git('add', '-A');
    repository.git('commit', '--quiet', '-m', 'By hand');
    const before = viewHost(repository);
    const { code, stderr } = await mahabharatha(repository, ['merge']);
    expect(code).toBe(1);
    expect(stderr).toContain('mahabharatha/demo/staging does not merge into main: out/A.txt');
    expect(viewHost(repository)).toEqual(before);
    expect(repository.git('status', '--porcelain')).toBe('');
    const [, commands = ''] = /By hand: (git switch .*), resolve/.exec(stderr) ?? [];
    const shell = (line: string): string =>
      execFileSync('bash', ['-c', line], { cwd: repository.root, encoding: 'utf8', stdio: 'pipe' });
    expect(() => shell(commands)).toThrow('git merge mahabharatha/demo/staging');
    expect(repository.git('diff', '--name-only', '--diff-filter=U')).toBe('out/A.txt\n');
    shell('git checkout --ours out/A.txt && git add --all && git commit --no-edit --quiet');
    const after = await mahabharatha(repository, ['merge']);
    expect(after).toMatchObject({ code: 0, stdout: 'main has all of mahabharatha/demo/staging already.\n' });
  });

  test('[FL-05] refuses a feature with open levels, unless --force takes what there is', async () => {
    const repository = copyOf(half);
    const before = viewHost(repository);
    const refused = await mahabharatha(repository, ['merge']);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('level 2 of demo is not complete');
    expect(viewHost(repository)).toEqual(before);
    expect(await mahabharatha(repository, ['merge', '--force'])).toMatchObject({ code: 0 });
    expect(filesOf(repository, 'main')).toEqual(['out/A.txt', 'out/B.txt']);
  });

  test.each(['hotcell.yaml', '.mahabharatha/config.yaml'])(
    '[FL-09] what a worker did to %s is not merged unseen',
    async (file) => {
      const repository = copyOf(whole);
      repository.git('switch', '--quiet', 'mahabharatha/demo/staging');
      repository.writeAll({ [file]: 'workers: { launcher_type: subprocess }\n' });
      repository.git('add', '--force', file);
      repository.git('commit', '--quiet', '-m', 'Weaken the walls');
      repository.git('switch', '--quiet', 'main');
      const before = repository.git('rev-parse', 'main');
      const refused = await mahabharatha(repository, ['merge']);
      expect(refused).toMatchObject({ stdout: '' });
      expect(refused.code).not.toBe(0);
      expect(refused.stderr).toContain(`changes settings of the fleet itself: ${file}`);
      expect(repository.git('rev-parse', 'main')).toBe(before);
      expect(await mahabharatha(repository, ['merge', '--force'])).toMatchObject({ code: 0 });
    },
  );

  test('[FL-06] without a state there is nothing to merge', async () => {
    const repository = stack.use(FleetRepository.make({ tasks: [toTask('A', 1)] }));
    const { code, stderr } = await mahabharatha(repository, ['merge']);
    expect(code).toBe(1);
    expect(stderr).toContain('demo');
    expect(repository.hasState()).toBe(false);
  });
});
