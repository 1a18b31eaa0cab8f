import { driverKind } from '../kind.ts';

export const PRELOAD = driverKind({
  traits: {
    confines: 'commands',
    images: false,
    sharesByDefault: false,
    terminals: false,
    workers: false,
    hostFolders: true,
  },
  auto: 'never',
  settings: {},
  make: async (around) => {
    const { PreloadDriver } = await import('./driver.ts');
    return new PreloadDriver(around);
  },
});
