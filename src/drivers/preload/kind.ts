import { driverKind } from '../kind.ts';
import { PRELOAD_TRAITS } from './traits.ts';

export const PRELOAD = driverKind({
  traits: PRELOAD_TRAITS,
  auto: 'never',
  settings: {},
  make: async (around) => {
    const { PreloadDriver } = await import('./driver.ts');
    return new PreloadDriver(around);
  },
});
