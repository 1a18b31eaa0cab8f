import type { RuntimeName } from '../../src/drivers/oci/runtime.ts';
import type { Exemptions } from './driver-contract.ts';

const OWN_KERNEL = 'gVisor: a kernel of its own counts and filters, and does not tell the host';

export const OCI_EXEMPTIONS: Readonly<Record<RuntimeName, Exemptions>> = {
  crun: {},
  runc: {},
  runsc: {
    'a process limit that was reached is reported': OWN_KERNEL,
    'no new privileges': 'gVisor: its /proc does not show it; its kernel has no set-uid',
    'system calls are filtered': OWN_KERNEL,
  },
};

const GVISOR_UNDER_AN_ENGINE: Exemptions = {
  ...OCI_EXEMPTIONS.runsc,
  'CPU limit':
    'gVisor: its own clock counts the time that the host makes it wait, so its figures cannot show the limit',
  'the memory limit of a running cell can be changed':
    'gVisor: its kernel does not hear of a change; a run that asks for other memory gets a cell booted with it',
};

/** By the runtime of the engine, or the engine. */
export const DOCKER_EXEMPTIONS: Readonly<Record<'runc' | 'runsc' | 'podman', Exemptions>> = {
  runc: {},
  runsc: GVISOR_UNDER_AN_ENGINE,
  podman: {
    'the memory limit of a running cell can be changed':
      'Podman: no such call; a run that asks for other memory gets a cell booted with it',
  },
};

const NO_WALLS = 'plain processes of the host: nothing is enforced but time and output';
const NOBODY_COUNTS = 'plain processes of the host: nobody counts';

export const SUBPROCESS_EXEMPTIONS: Exemptions = {
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
  'no privileges': NO_WALLS,
  'no new privileges': NO_WALLS,
  'system calls are filtered': NO_WALLS,
  'sees only its own processes': NO_WALLS,
};
