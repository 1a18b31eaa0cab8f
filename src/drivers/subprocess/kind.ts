import { driverKind } from '../kind.ts';

export const SUBPROCESS = driverKind({
  traits: {
    confines: 'nothing',
    images: false,
    sharesByDefault: false,
    terminals: false,
    workers: true,
    hostFolders: true,
  },
  auto: 'never',
  settings: {},
  make: async (around) => {
    const { SubprocessDriver } = await import('./driver.ts');
    return new SubprocessDriver(around);
  },
});
