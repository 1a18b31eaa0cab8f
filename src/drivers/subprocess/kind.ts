import { driverKind } from '../kind.ts';
import { SUBPROCESS_TRAITS } from './traits.ts';

export const SUBPROCESS = driverKind({
  traits: SUBPROCESS_TRAITS,
  auto: 'never',
  settings: {},
  make: async (around) => {
    const { SubprocessDriver } = await import('./driver.ts');
    return new SubprocessDriver(around);
  },
});
