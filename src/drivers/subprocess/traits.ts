import type { DriverTraits } from '../../core/driver.ts';

export const SUBPROCESS_TRAITS: DriverTraits = {
  confines: 'nothing',
  images: false,
  sharesByDefault: false,
  terminals: false,
  workers: true,
  hostFolders: true,
};
