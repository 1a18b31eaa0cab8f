import type { Note } from '../../core/driver.ts';
import { enforcedBy } from '../../core/enforcement.ts';
import { toHotcellError } from '../../core/errors.ts';
import { STATUS, VERSION } from './argv.ts';
import { ContainerCli } from './cli.ts';
import { START_SERVICES } from './cli-words.ts';
import { unusable, type Probed } from '../probed.ts';
import { isAtLeast, parseStatus, parseVersion } from './shapes.ts';
import type { AppleOptions } from './site.ts';

const PROGRAM = 'container';
const INSTALL = `Install the package of github.com/apple/container, then: ${START_SERVICES}`;
/** Before it everything was written in another form, and a container that was not there was no error. */
const OLDEST = [1, 0, 0] as const;

/** What keeps a cell in is a kernel of its own in a virtual machine of its own, told what to do by the CLI. */
export const ENFORCEMENT = enforcedBy('hypervisor');

const NOTES: readonly Note[] = [
  { text: 'CPUs are granted whole: a fraction is rounded up, and 0.5 becomes 1' },
  { text: 'a cell has 200 MB of memory at least, also when less is asked for' },
];

export async function probeApple(options: Pick<AppleOptions, 'cli'>): Promise<Probed<ContainerCli>> {
  if (options.cli === undefined && (process.platform !== 'darwin' || process.arch !== 'arm64'))
    return unusable(`Apple's container needs macOS on Apple silicon`, 'Use the driver oci or docker here.');
  const cli = new ContainerCli(options.cli ?? PROGRAM);
  try {
    const printed = await cli.call('tell its version', VERSION);
    const version = parseVersion(printed);
    if (version === undefined)
      return unusable(
        `${cli.path} is another program than Apple's container`,
        `${INSTALL}, or correct apple.cli.`,
      );
    if (!isAtLeast(version, OLDEST))
      return unusable(`container ${version.text} is too old: 1.0.0 is the first that works`, INSTALL);
    const { stdout } = await cli.ask('tell its status', STATUS);
    const status = parseStatus(stdout);
    if (status !== 'running')
      return unusable(
        `the services of container do not run (${status ?? 'no status'})`,
        `Run: ${START_SERVICES}`,
      );
    return {
      ok: true,
      probe: {
        ok: true,
        runtime: `container ${version.text}`,
        enforcement: ENFORCEMENT,
        notes: NOTES,
        facts: [{ name: 'command', value: cli.path }],
      },
      host: cli,
    };
  } catch (error) {
    const { message, hint } = toHotcellError(error);
    return unusable(message, hint);
  }
}
