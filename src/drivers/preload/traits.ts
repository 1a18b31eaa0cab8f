import type { DriverTraits } from '../../core/driver.ts';

export const PRELOAD_TRAITS: DriverTraits = {
  confines: 'commands',
  images: false,
  sharesByDefault: false,
  terminals: false,
  workers: false,
  hostFolders: true,
};
