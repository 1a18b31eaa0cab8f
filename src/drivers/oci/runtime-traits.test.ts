import { expect, test } from 'vitest';
import { toTraits } from './runtime-traits.ts';

test.each([
  ['crun', '6.1.0-18-amd64', ['rnosuid', 'rnodev']],
  ['crun', '5.12.0', ['rnosuid', 'rnodev']],
  ['crun', '5.4.0-100-generic', []],
  ['runc', '6.1.0', []],
  ['runsc', '6.1.0', []],
] as const)('[FL-09, SC-03] what a writable bind of %s on Linux %s needs', (runtime, kernel, options) => {
  expect(toTraits(runtime, kernel).writableBind).toEqual(options);
});
