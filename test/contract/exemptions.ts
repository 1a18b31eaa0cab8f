import type { RuntimeName } from '../../src/drivers/oci/runtime.ts';
import type { Exemptions } from './driver-contract.ts';

export const OCI_EXEMPTIONS: Readonly<Record<RuntimeName, Exemptions>> = { crun: {}, runc: {}, runsc: {} };

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
  'disk limit': NO_WALLS,
  'open files limit': NO_WALLS,
  'cells do not share files': NO_WALLS,
  'no network': NO_WALLS,
  'nothing writable but the workdir': NO_WALLS,
  'no privileges': NO_WALLS,
  'system calls are filtered': NO_WALLS,
  'sees only its own processes': NO_WALLS,
};
