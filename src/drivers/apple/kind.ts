import * as z from 'zod';
import { group } from '../../core/setting-values.ts';
import { driverKind } from '../kind.ts';
import { requireHost } from '../probed.ts';

export const APPLE = driverKind({
  traits: {
    confines: 'cells',
    images: true,
    // A cell takes even more: it is a virtual machine.
    sharesByDefault: true,
    terminals: true,
    workers: false,
    hostFolders: true,
  },
  auto: ['darwin'],
  settings: {
    apple: group('the apple driver', {
      cli: z
        .string()
        .min(1)
        .optional()
        .describe("Apple's container command, if it is not the one of the system"),
    }),
  },
  make: async (around, { apple }) => {
    const { AppleDriver } = await import('./driver.ts');
    return new AppleDriver({ ...around, cli: apple.cli });
  },
  openImages: async (around, { apple }) => {
    const [{ AppleImages }, { probeApple }] = await Promise.all([
      import('./images.ts'),
      import('./probe.ts'),
    ]);
    return new AppleImages(requireHost(await probeApple({ cli: apple.cli })).host, around);
  },
});
