import { execFileSync } from 'node:child_process';

const FIELDS = ['RELEASE', 'CODENAME', 'COMPONENT', 'REPO_URI'];

/**
 * Where this machine gets the packages of a release from, as a line of sources.list. We ask apt and name no mirror of
 * our own: a machine may reach only the one that it was set up with.
 */
export function findDebianSource(suite: string): string {
  const format = FIELDS.map((field) => `$(${field})`).join(' ');
  const targets = execFileSync('apt-get', ['indextargets', '--format', format, 'Created-By: Packages']);
  for (const line of targets.toString().split('\n')) {
    const [release = '', codename, component, uri = ''] = line.split(' ');
    // A machine may follow `stable` by that name.
    if (component === 'main' && (release === suite || codename === suite))
      return `deb ${uri} ${release} main`;
  }
  throw new Error(`apt knows no packages of ${suite}: see /etc/apt/sources.list`);
}
