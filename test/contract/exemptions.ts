import type { RuntimeName } from '../../src/drivers/oci/runtime.ts';
import type { Exemptions } from './driver-contract.ts';
import type { LastingExemptions } from './lasting.ts';

const OWN_KERNEL = 'gVisor: a kernel of its own counts and filters, and does not tell the host';

export const OCI_EXEMPTIONS: Readonly<Record<RuntimeName, Exemptions>> = {
  crun: {},
  runc: {},
  runsc: {
    'a process limit that was reached is reported': OWN_KERNEL,
    'no new privileges': 'gVisor: its /proc does not show it; its kernel has no set-uid',
    'system calls are filtered': OWN_KERNEL,
    'the folders that a worker writes to honour no set-user-id and no devices':
      'gVisor: it shows no such options; its kernel has neither set-uid nor devices of the host',
  },
};

const GVISOR_UNDER_AN_ENGINE: Exemptions = {
  ...OCI_EXEMPTIONS.runsc,
  'CPU limit':
    'gVisor: its own clock counts the time that the host makes it wait, so its figures cannot show the limit',
  'the memory limit of a running cell can be changed':
    'gVisor: its kernel does not hear of a change; a run that asks for other memory gets a cell booted with it',
};

const BINDS_OF_ENGINES: Exemptions = {
  'the folders that a worker writes to honour no set-user-id and no devices':
    'their API has no such options for a bind; no program can gain a privilege, and none may use a device',
};

/** By the runtime of the engine, or the engine. */
export const DOCKER_EXEMPTIONS: Readonly<Record<'runc' | 'runsc' | 'podman', Exemptions>> = {
  runc: BINDS_OF_ENGINES,
  runsc: GVISOR_UNDER_AN_ENGINE,
  podman: {
    ...BINDS_OF_ENGINES,
    'the memory limit of a running cell can be changed':
      'Podman: no such call; a run that asks for other memory gets a cell booted with it',
  },
};

/** Of drivers that have no workers. */
const toWorkerless = (reason: string): Exemptions => ({
  'a worker writes to folders of the host as their owner': reason,
  'what is written last is there when a worker was killed': reason,
  'a file that is mounted over another stays there, and so does the one below': reason,
  'nothing is made in a folder of the host to mount something on': reason,
  'a worker is not root, has no capability and sees nothing else of the host': reason,
  'the folders that a worker writes to honour no set-user-id and no devices': reason,
  'a worker that would be root is refused': reason,
  'the tools of an agent run in a worker, and it has terminals': reason,
});

/** What a virtual machine around each cell makes otherwise than the kernel of the host. */
export const APPLE_EXEMPTIONS: Exemptions = {
  ...toWorkerless('container: nobody says whose what a machine writes to the host is; workers are refused'),
  'CPU limit': 'container: whole CPUs only, so that a fraction is rounded up',
  'the memory limit of a running cell can be changed':
    'container: no such command; a run that asks for other memory gets a cell booted with it',
  'a process limit that was reached is reported':
    'container: no limit of the cgroup; the kernel in the machine refuses by the limit of the user, and counts nothing',
  'system calls are filtered': 'container: a kernel of its own takes them, not that of the host',
};

const NO_WALLS = 'plain processes of the host: nothing is enforced but time and output';
const NOBODY_COUNTS = 'plain processes of the host: nobody counts';

export const SUBPROCESS_EXEMPTIONS: Exemptions = {
  ...toWorkerless('plain processes of the host: they are the caller, and see its folders where they are'),
  '/dev/stdout and /dev/stderr can be opened again': 'its streams are the socket pairs that Node calls pipes',
  'CPU time is counted': NOBODY_COUNTS,
  'memory is counted': NOBODY_COUNTS,
  'CPU limit': NO_WALLS,
  'memory limit': NO_WALLS,
  'the memory limit of a running cell can be changed': NO_WALLS,
  'process limit': NO_WALLS,
  'a process limit that was reached is reported': NO_WALLS,
  'disk limit': NO_WALLS,
  'open files limit': NO_WALLS,
  'cells do not share files': NO_WALLS,
  'a link leads nowhere that the programs of the cell could not go': NO_WALLS,
  'no network': NO_WALLS,
  'nothing writable but the workdir': NO_WALLS,
  'folders of the host can be read, also what is added later, and not changed': NO_WALLS,
  'no privileges': NO_WALLS,
  'no new privileges': NO_WALLS,
  'system calls are filtered': NO_WALLS,
  'sees only its own processes': NO_WALLS,
};

const CLOSED_PROC =
  'its /proc is closed but for a few files of the first process; test/attacks/preload-walls.test.ts looks from outside';
const SAMPLED =
  'the supervisor looks every 40 ms: what lasts shorter is missed (test/attacks/preload-limits.test.ts)';

export const PRELOAD_EXEMPTIONS: Exemptions = {
  ...toWorkerless('no file system of its own to mount folders in; workers are refused'),
  '/dev/stdout and /dev/stderr can be opened again': 'its streams are the socket pairs that Node calls pipes',
  'killing one exec leaves the other': CLOSED_PROC,
  'memory is counted': SAMPLED,
  'the memory limit of a running cell can be changed': SAMPLED,
  'CPU limit': 'a share of a core is refused unless `cpus` is given up; whole cores are kept',
  'disk limit':
    'the supervisor ends the command; a single file stops at the limit, with SIGXFSZ and not ENOSPC',
  'no network': CLOSED_PROC,
  'system calls are filtered': CLOSED_PROC,
  'sees only its own processes': CLOSED_PROC,
};

const ENDS_WITH_THE_CONNECTION =
  'Podman: the input of a container ends with the connection to it, and so its cells with the server';

/** By runtime of the oci driver, or by engine. */
export const LASTING_EXEMPTIONS: Readonly<Record<RuntimeName | 'docker' | 'podman', LastingExemptions>> = {
  crun: {},
  runc: {},
  runsc: {},
  docker: {},
  podman: {
    'a server that is killed while commands write loses nothing': ENDS_WITH_THE_CONNECTION,
    'a server that stops leaves its cells running, and its process ends by itself': ENDS_WITH_THE_CONNECTION,
    'a frozen cell can be taken over, and then runs': ENDS_WITH_THE_CONNECTION,
    'only cells of the same store that nobody wants are removed': ENDS_WITH_THE_CONNECTION,
    'no program of the cell can speak for the server, nor hear it': ENDS_WITH_THE_CONNECTION,
    'a cell that ended while no server was there is lost': ENDS_WITH_THE_CONNECTION,
  },
};
