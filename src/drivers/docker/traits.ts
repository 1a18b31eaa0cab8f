import type { DriverTraits } from '../../core/driver.ts';

export const DOCKER_TRAITS: DriverTraits = {
  confines: 'cells',
  images: true,
  // A cell takes a third of a second of CPU.
  sharesByDefault: true,
  terminals: true,
  workers: true,
  hostFolders: true,
};
