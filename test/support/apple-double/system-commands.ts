import { CliError } from './cli-error.ts';
import { toCompactJson } from './foundation-json.ts';
import { callShim } from './shim-call.ts';
import type { ParsedCall } from './parse-arguments.ts';
import type { DoubleState } from './state.ts';
import { isAtLeast } from './versions.ts';

const COMMIT = '0190097d0000000000000000000000000000aaaa';
const sentence = (name: string, version: string): string =>
  `${name} version ${version} (build: release, commit: ${COMMIT.slice(0, 7)})`;

export function printVersion(state: DoubleState): void {
  process.stdout.write(`${sentence('container CLI', state.control.version)}\n`);
}

/** The JSON is printed in either case; the exit code tells. */
export function showStatus(state: DoubleState, { options }: ParsedCall): number {
  const { services, version } = state.control;
  const isUp = services === 'running';
  if (options.one('format') === 'json')
    process.stdout.write(
      `${toCompactJson(isAtLeast(version, '1.4.1') ? nested(state) : flat(state), version)}\n`,
    );
  else if (isUp) process.stdout.write(`FIELD VALUE\nstatus running\n`);
  else
    process.stdout.write(
      services === 'unregistered'
        ? 'apiserver is not running and not registered with launchd\n'
        : 'apiserver is not running\n',
    );
  return isUp ? 0 : 1;
}

function flat({ control: { services, version } }: DoubleState): object {
  const isUp = services === 'running';
  const name = 'container-apiserver';
  return {
    apiServerAppName: isUp ? name : '',
    apiServerBuild: isUp ? 'release' : '',
    apiServerCommit: isUp ? COMMIT : '',
    apiServerVersion: isUp ? sentence(name, version) : '',
    appRoot: isUp ? '/Users/me/Library/Application Support/com.apple.container/' : '',
    installRoot: isUp ? '/usr/local/' : '',
    status: services,
  };
}

function nested({ control: { services, version } }: DoubleState): object {
  if (services !== 'running') return { status: services };
  const side = (appName: string) => ({ appName, build: 'release', commit: COMMIT, version });
  return {
    status: services,
    client: side('container'),
    host: { architecture: 'arm64', cpus: 8, operatingSystem: 'macOS 26' },
    resources: { containersRunning: 0, containersTotal: 0, images: 0 },
    server: side('container-apiserver'),
    paths: { appRoot: '/Users/me/Library', installRoot: '/usr/local' },
  };
}

export function showSystemVersion(state: DoubleState): number {
  const { services, version } = state.control;
  const entry = (appName: string, text: string) => ({
    appName,
    buildType: 'release',
    commit: COMMIT,
    version: text,
  });
  const server = isAtLeast(version, '1.4.1') ? version : sentence('container-apiserver', version);
  const entries = [
    entry('container', version),
    ...(services === 'running' ? [entry('container-apiserver', server)] : []),
  ];
  process.stdout.write(`${toCompactJson(entries, version)}\n`);
  return 0;
}

export function startSystem(state: DoubleState, { options }: ParsedCall): number {
  if (!options.has('enable-kernel-install') && !options.has('disable-kernel-install')) {
    process.stdout.write('Install the recommended default kernel from [URL]? [Y/n]: ');
    throw new CliError(1, 'Error: failed to read user input\n');
  }
  state.control = { ...state.control, services: 'running' };
  process.stderr.write('Launching container-apiserver...\nTesting access to container-apiserver...\n');
  return 0;
}

/** All containers end with the services. */
export async function stopSystem(state: DoubleState): Promise<number> {
  const running = state
    .listContainers()
    .filter(({ configuration }) => state.stateOf(configuration.id).state === 'running');
  await Promise.all(
    running.map(({ configuration }) =>
      callShim(
        state,
        configuration.id,
        { type: 'signal', signal: 'TERM', thenKillAfterMs: 5000 },
        { interactive: false, until: 'exited' },
      ),
    ),
  );
  state.control = { ...state.control, services: 'unregistered' };
  return 0;
}
