import type { RuntimeName } from '../../src/drivers/oci/runtime.ts';
import type { Exemptions } from './driver-contract.ts';

const OWN_KERNEL = 'gVisor: a kernel of its own counts and filters, and does not tell the host';

export const OCI_EXEMPTIONS: Readonly<Record<RuntimeName, Exemptions>> = {
  crun: {},
  runc: {},
  runsc: {
    'killing one exec leaves the other':
      'gVisor: the host cannot tell the processes of one exec from another, so all end',
    'a process limit that was reached is reported': OWN_KERNEL,
    'no new privileges': 'gVisor: its /proc does not show it; its kernel has no set-uid',
    'system calls are filtered': OWN_KERNEL,
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
  'no network': NO_WALLS,
  'nothing writable but the workdir': NO_WALLS,
  'no privileges': NO_WALLS,
  'no new privileges': NO_WALLS,
  'system calls are filtered': NO_WALLS,
  'sees only its own processes': NO_WALLS,
};
