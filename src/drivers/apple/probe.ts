import type { Note, Probe } from '../../core/driver.ts';
import type { Enforcement } from '../../core/enforcement.ts';
import { toHotcellError } from '../../core/errors.ts';
import { STATUS, VERSION } from './argv.ts';
import { ContainerCli } from './cli.ts';
import { START_SERVICES } from './cli-words.ts';
import { isAtLeast, parseStatus, parseVersion } from './shapes.ts';

export interface ProbeOptions {
  /** The `container` command, if it is not the one of the system. */
  readonly cli: string | undefined;
}

const PROGRAM = 'container';
const INSTALL = `Install the package of github.com/apple/container, then: ${START_SERVICES}`;
/** Before it everything was written in another form, and a container that was not there was no error. */
const OLDEST = [1, 0, 0] as const;

/** What keeps a cell in is a kernel of its own in a virtual machine of its own, told what to do by the CLI. */
export const ENFORCEMENT: Enforcement = {
  cpus: 'hypervisor',
  memoryBytes: 'hypervisor',
  processes: 'hypervisor',
  diskBytes: 'hypervisor',
  openFiles: 'hypervisor',
  wallTimeMs: 'supervisor',
  outputBytes: 'supervisor',
  network: 'hypervisor',
  filesystem: 'hypervisor',
  identity: 'hypervisor',
  processView: 'hypervisor',
  syscalls: 'hypervisor',
};

const NOTES: readonly Note[] = [
  { text: 'CPUs are granted whole: a fraction is rounded up, and 0.5 becomes 1' },
  { text: 'a cell has 200 MB of memory at least, also when less is asked for' },
];

export async function probeApple(
  options: ProbeOptions,
): Promise<{ readonly probe: Probe; readonly cli: ContainerCli | undefined }> {
  const refuse = (problem: string, remedy: string) => ({
    probe: { ok: false, problem, remedy } as const,
    cli: undefined,
  });
  if (options.cli === undefined && (process.platform !== 'darwin' || process.arch !== 'arm64'))
    return refuse(`Apple's container needs macOS on Apple silicon`, 'Use the driver oci or docker here.');
  const cli = new ContainerCli(options.cli ?? PROGRAM);
  try {
    const printed = await cli.call('tell its version', VERSION);
    const version = parseVersion(printed);
    if (version === undefined)
      return refuse(
        `${cli.path} is another program than Apple's container`,
        `${INSTALL}, or correct apple.cli.`,
      );
    if (!isAtLeast(version, OLDEST))
      return refuse(`container ${version.text} is too old: 1.0.0 is the first that works`, INSTALL);
    const { stdout } = await cli.ask('tell its status', STATUS);
    const status = parseStatus(stdout);
    if (status !== 'running')
      return refuse(
        `the services of container do not run (${status ?? 'no status'})`,
        `Run: ${START_SERVICES}`,
      );
    return {
      probe: {
        ok: true,
        runtime: `container ${version.text}`,
        enforcement: ENFORCEMENT,
        notes: NOTES,
        facts: [{ name: 'command', value: cli.path }],
      },
      cli,
    };
  } catch (error) {
    const { message, hint } = toHotcellError(error);
    return refuse(message, hint);
  }
}
