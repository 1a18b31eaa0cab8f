import * as z from 'zod';
import { HotcellError } from '../../core/errors.ts';
import { driverKind } from '../kind.ts';

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
    apple: z
      .strictObject({
        cli: z
          .string()
          .min(1)
          .optional()
          .describe("Apple's container command, if it is not the one of the system"),
      })
      .prefault({})
      .describe('the apple driver'),
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
    const { probe, cli } = await probeApple({ cli: apple.cli });
    if (cli !== undefined) return new AppleImages(cli, around);
    throw probe.ok
      ? new HotcellError('INTERNAL', 'a probe that succeeds must have a command')
      : new HotcellError('DRIVER_UNAVAILABLE', probe.problem, { hint: probe.remedy });
  },
});
