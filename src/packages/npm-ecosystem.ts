import type { Ecosystem } from './ecosystem.ts';
import { NEWEST, type InstallRequest } from './install-request.ts';
import { explainNpm } from './npm-failure.ts';
import { LOCK_FILE, MODULES, inspectNpmSet } from './npm-set.ts';
import { checkSpec } from './package-spec.ts';

/** Packages of npm, installed by bun. */
export const NPM: Ecosystem = {
  name: 'npm',
  layout: { lock: LOCK_FILE, modules: MODULES },
  checkSpec,
  plan: (request) => ({
    files: [{ name: 'package.json', content: toPackageJson(request) }],
    argv: toInstallArguments(request),
    env: { BUN_INSTALL_CACHE_DIR: '{workdir}/cache', DO_NOT_TRACK: '1' },
    results: [LOCK_FILE, MODULES],
  }),
  explain: explainNpm,
  inspect: inspectNpmSet,
};

function toPackageJson({ specs }: InstallRequest): string {
  const dependencies = specs.map(({ name, range }) => [name, range ?? NEWEST]);
  // SECURITY: an empty list is not the same as none, which trusts hundreds of packages by name.
  return JSON.stringify({
    private: true,
    dependencies: Object.fromEntries(dependencies),
    trustedDependencies: [],
  });
}

function toInstallArguments({ minimumReleaseAgeSeconds }: InstallRequest): [string, ...string[]] {
  return [
    'bun',
    'install',
    // SECURITY: nothing of a package runs here.
    '--ignore-scripts',
    '--backend=copyfile',
    '--linker=hoisted',
    '--no-progress',
    '--no-summary',
    '--save-text-lockfile',
    ...(minimumReleaseAgeSeconds > 0 ? [`--minimum-release-age=${minimumReleaseAgeSeconds}`] : []),
  ];
}
