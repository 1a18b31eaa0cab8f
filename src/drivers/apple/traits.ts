import type { DriverTraits } from '../../core/driver.ts';

export const APPLE_TRAITS: DriverTraits = {
  confines: 'cells',
  images: true,
  // A cell takes even more: it is a virtual machine.
  sharesByDefault: true,
  terminals: true,
  workers: false,
  hostFolders: true,
};
