import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { Plan } from './hostile-look-attack.ts';

const HOOKS = [
  'applypatch-msg', 'pre-commit', 'prepare-commit-msg', 'commit-msg', 'post-commit', 'pre-rebase', 'post-checkout',
  'post-merge', 'pre-push', 'pre-receive', 'update', 'post-receive', 'post-update', 'reference-transaction',
  'post-index-change', 'fsmonitor-watchman', 'pre-auto-gc', 'post-rewrite', 'push-to-checkout',
]; // prettier-ignore

function git(args: readonly string[], input?: string | Buffer): string {
  const { stdout, status, stderr } = spawnSync('git', [...args], { input: input ?? '', encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

const PROGRAMS = [
  'core.fsmonitor', 'core.sshCommand', 'core.editor', 'core.pager', 'core.gitProxy', 'core.askPass', 'diff.external',
  'gpg.program', 'credential.helper', 'core.alternateRefsCommand', 'sequence.editor', 'uploadpack.packObjectsHook',
  'filter.evil.clean', 'filter.evil.smudge', 'filter.evil.process', 'diff.evil.command', 'diff.evil.textconv',
  'merge.evil.driver', 'alias.status', 'alias.rev-parse', 'pager.log', 'trailer.evil.command',
]; // prettier-ignore
/** With which git still commits. */
const QUIET = PROGRAMS.filter((name) => name !== 'filter.evil.process');
const BREAKING = [
  'core.hooksPath=/git/hooks', 'core.worktree=/', 'include.path=/etc/gitconfig', 'commit.gpgSign=true', 'core.bare=true',
  'core.attributesFile=/proc/self/environ', 'extensions.worktreeConfig=true', 'filter.evil.required=true',
]; // prettier-ignore

/** Settings that name programs; `touch` leaves a mark on whatever machine runs them. */
function toEvilSettings(command: string, names: readonly string[] = PROGRAMS): string[] {
  return names.map((key) => `${key}=${command}`);
}

/** Everything that would make git run programs, look elsewhere or take one task for another; the work is done all the same. */
export function poison(plan: Plan, attempt: number): object {
  const { canary, precious } = plan;
  const command = `touch '${canary}/program'`;
  forge();
  mkdirSync('/git/hooks', { recursive: true });
  for (const hook of HOOKS) {
    writeFileSync(`/git/hooks/${hook}`, `#!/bin/sh\ntouch '${canary}/hook-${hook}'\nexit 0\n`);
    chmodSync(`/git/hooks/${hook}`, 0o755);
  }
  symlinks(plan);
  oddNames();
  confuseRefs();
  writeFileSync('.gitattributes', '* filter=evil diff=evil merge=evil\n');
  writeFileSync('/git/objects/info/alternates', ['/repo/objects', '/', ...precious, ''].join('\n'));
  writeFileSync('hotcell.yaml', 'driver: subprocess\n');
  // With all of them git in the cell does not work any more: that is the attempt's own loss.
  const settings =
    attempt === 1 ? [...toEvilSettings(command), ...BREAKING] : toEvilSettings(`${command}; cat`, QUIET);
  for (const setting of settings) {
    const [key = ''] = setting.split('=');
    const { status } = spawnSync('git', [
      'config',
      '--file',
      '/git/config',
      key,
      setting.slice(key.length + 1),
    ]);
    if (status !== 0) throw new Error(`git config ${setting}`);
  }
  return { attempt, hooks: HOOKS.length, settings: settings.length };
}

/** Commits that say that they are those of other tasks. */
function forge(): void {
  for (const task of ['victim', 'after', 'neighbour']) {
    writeFileSync(`out/forged-${task}.json`, '{}\n');
    git(['add', '-f', `out/forged-${task}.json`]);
    git(['commit', '-q', '-m', `Mahabharatha [${task}]: do ${task}\n\nTask-ID: ${task}\n`]);
  }
}

/** What a later checkout, copy or set-up on the host could follow. */
function symlinks({ canary, secrets }: Plan): void {
  mkdirSync('out/links', { recursive: true });
  const targets = [
    '/',
    '/etc/shadow',
    '/proc/self/environ',
    `${canary}/written`,
    '../../../..',
    '.git',
    'loop',
  ];
  targets.forEach((target, index) => symlinkSync(target, `out/links/${index}`));
  symlinkSync('loop', 'out/links/loop');
  rmSync('conf', { recursive: true });
  symlinkSync(canary, 'conf');
  rmSync('.env', { force: true });
  symlinkSync(`${canary}/env`, '.env');
  for (const name of ['package.json', 'requirements.txt', '.npmrc'])
    symlinkSync(secrets.find((path) => path.endsWith('.npmrc')) ?? '', name);
  git(['add', '-f', '.env']);
}

function oddNames(): void {
  mkdirSync('out/odd', { recursive: true });
  const names = [
    'x'.repeat(255),
    '-rf',
    '--help',
    ' ',
    'a\nb',
    '\u001b[2J\u001b]0;evil\u0007',
    '$(touch evil)',
    '"',
    '\\',
    '%s%n',
  ];
  for (const name of names) writeFileSync(`out/odd/${name}`, 'odd\n');
  writeFileSync(Buffer.concat([Buffer.from('out/odd/'), Buffer.from([0xff, 0xfe, 0x80])]), 'odd\n');
  // Ignored, and hard to remove: deeper than any path can be, and shut.
  const deep =
    'import os\nos.makedirs(".state/deep")\nos.chdir(".state/deep")\nfor _ in range(60): os.mkdir("d" * 200); os.chdir("d" * 200)';
  spawnSync('python3', ['-c', deep]);
  if (existsSync('.state/shut')) return;
  mkdirSync('.state/shut/in', { recursive: true });
  chmodSync('.state/shut/in', 0);
  chmodSync('.state/shut', 0);
}

function confuseRefs(): void {
  const head = git(['rev-parse', 'HEAD']);
  const names = [
    'refs/heads/main', 'refs/heads/HEAD', 'refs/heads/mahabharatha/demo/staging', 'refs/heads/mahabharatha/demo/worker-99',
    'refs/heads/refs/heads/main', 'refs/remotes/origin/main', 'refs/tags/main', 'refs/stash', `refs/heads/${head}`,
    'refs/mahabharatha/demo/rescued/worker-0-000000000000', 'FETCH_HEAD', 'ORIG_HEAD',
  ]; // prettier-ignore
  for (const name of names) git(['update-ref', name, head]);
}

/** Other parents for the same commits, for whoever believes it. */
export function graft(attempt: number): object {
  if (attempt > 1) return { attempt };
  const head = git(['rev-parse', 'HEAD']);
  const orphan = git(['commit-tree', `${head}^{tree}`, '-m', 'nobody’s child']);
  mkdirSync('/git/info', { recursive: true });
  writeFileSync('/git/info/grafts', `${head}\n`);
  git(['update-ref', `refs/replace/${head}`, orphan]);
  writeFileSync('/git/shallow', `${head}\n`);
  for (const lock of ['index.lock', 'HEAD.lock', 'packed-refs.lock', 'config.lock'])
    writeFileSync(`/git/${lock}`, '');
  return { attempt, head, orphan };
}

/** One thing after the other that nobody may accept; the last one is honest. */
export function twist({ canary }: Plan, attempt: number): object {
  const turns: readonly (() => void)[] = [
    () =>
      commitTree([
        [
          '40000',
          '.git',
          tree([['100644', 'config', blob(`[core]\n\tfsmonitor = touch '${canary}/tree'\n`)]]),
        ],
      ]),
    () => commitTree([['40000', '..', tree([['100644', 'evil', blob('evil')]])]]),
    () => commitTree([['40000', '.GIT', tree([['100755', 'hooks', blob('evil')]])]]),
    () => commitTree([['120000', '.gitmodules', blob('/etc/passwd')]]),
    () =>
      commitTree([
        [
          '100644',
          '.gitmodules',
          blob(`[submodule "x"]\n\tpath = x\n\turl = -u./evil;touch ${canary}/url\n`),
        ],
      ]),
    () => git(['update-ref', 'HEAD', git(['commit-tree', 'HEAD^{tree}', '-m', 'a new beginning'])]),
    () => nest(canary),
    () => {
      writeFileSync('/git/HEAD', 'ref: refs/heads/../../../etc/passwd\n');
      rmSync('/git/refs', { recursive: true });
      writeFileSync('/git/refs', 'evil');
    },
  ];
  turns[attempt - 1]?.();
  return { attempt };
}

export const TWISTS = 8;

type Entry = readonly [mode: string, name: string, id: string];

function blob(content: string): string {
  return git(['hash-object', '-w', '--stdin'], content);
}

/** As bytes: git itself would refuse some of the names. */
function tree(entries: readonly Entry[]): string {
  const bytes = entries.map(([mode, name, id]) =>
    Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]),
  );
  return git(['hash-object', '-t', 'tree', '-w', '--stdin', '--literally'], Buffer.concat(bytes));
}

function commitTree(entries: readonly Entry[]): void {
  git(['update-ref', 'HEAD', git(['commit-tree', tree(entries), '-p', 'HEAD', '-m', 'a tree'])]);
}

/** A repository within the worktree. */
function nest(canary: string): void {
  git(['init', '-q', 'nested']);
  const nobody = ['-c', 'user.name=x', '-c', 'user.email=x@example.org'];
  git(['-C', 'nested', ...nobody, 'commit', '-q', '--allow-empty', '-m', 'nested']);
  for (const key of ['core.fsmonitor', 'core.sshCommand', 'core.pager'])
    git(['-C', 'nested', 'config', key, `touch '${canary}/nested'`]);
  mkdirSync('nested/.git/hooks', { recursive: true });
  writeFileSync('nested/.git/hooks/post-index-change', `#!/bin/sh\ntouch '${canary}/nested-hook'\n`);
  chmodSync('nested/.git/hooks/post-index-change', 0o755);
}
