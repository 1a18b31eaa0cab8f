import * as z from 'zod';
import { choice } from '../../core/setting-values.ts';
import { driverKind } from '../kind.ts';

export const OCI = driverKind({
  traits: {
    confines: 'cells',
    images: false,
    sharesByDefault: false,
    terminals: true,
    workers: true,
    hostFolders: true,
  },
  auto: ['linux'],
  settings: {
    runtime: choice('auto', ['auto', 'crun', 'runc', 'runsc']).describe('OCI runtime of the oci driver'),
    rootfs: z.string().optional().describe("folder to use as root of the cells instead of the host's /usr"),
  },
  make: async (around, { runtime, rootfs }) => {
    const { OciDriver } = await import('./driver.ts');
    return new OciDriver({ ...around, runtime, rootfs });
  },
});
