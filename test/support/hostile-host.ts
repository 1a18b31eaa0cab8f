import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import type { HostileSite } from './hostile-site.ts';

/** In everything of the repository that is not the history of the branch. */
export function hideSecrets(site: HostileSite): void {
  const at = (path: string): string => join(site.root, path);
  site.write(at('notes.secret'), site.secret('untracked'));
  site.git('switch', '--quiet', '-c', 'private');
  site.write(at('private.txt'), site.secret('branch'));
  site.git('add', 'private.txt');
  site.git('commit', '--quiet', '-m', site.secret('message'));
  site.git('tag', 'secret-tag');
  site.git('switch', '--quiet', 'main');
  site.write(at('dropped.txt'), site.secret('dropped'));
  site.git('add', 'dropped.txt');
  site.git('commit', '--quiet', '-m', 'to be dropped');
  site.git('reset', '--quiet', '--hard', 'HEAD^');
  site.write(at('conf/readme'), site.secret('stash'));
  site.git('stash', '--quiet');
  site.git('remote', 'add', 'origin', `https://user:${site.secret('remote')}@example.org/x.git`);
}

/** Programs of the user that a careless git would run for what workers have made. */
export function armHost(site: HostileSite): void {
  const at = (path: string): string => join(site.root, path);
  const touch = (name: string): string => `touch '${site.canary}/${name}'`;
  const settings = {
    'filter.evil.clean': `${touch('clean')}; cat`,
    'filter.evil.smudge': `${touch('smudge')}; cat`,
    'diff.evil.command': touch('diff'),
    'diff.evil.textconv': touch('textconv'),
    'core.fsmonitor': touch('fsmonitor'),
    'diff.external': touch('external'),
    'gpg.program': touch('gpg'),
    'core.pager': touch('pager'),
  };
  for (const [key, value] of Object.entries(settings)) site.git('config', key, value);
  const hooks = [
    'pre-commit',
    'post-commit',
    'post-checkout',
    'post-merge',
    'reference-transaction',
    'post-index-change',
  ];
  for (const hook of hooks) {
    site.write(at(`.git/hooks/${hook}`), `#!/bin/sh\n# ${site.secret('hook')}\n${touch(`hook-${hook}`)}\n`);
    chmodSync(at(`.git/hooks/${hook}`), 0o755);
  }
}
