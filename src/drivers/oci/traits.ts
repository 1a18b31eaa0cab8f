import type { DriverTraits } from '../../core/driver.ts';

export const OCI_TRAITS: DriverTraits = {
  confines: 'cells',
  images: false,
  sharesByDefault: false,
  terminals: true,
  workers: true,
  hostFolders: true,
};
