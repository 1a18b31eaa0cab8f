import { expect, test } from 'vitest';
import { toHostname } from './hostname.ts';

test.each([
  ['mahabharatha-worker-0', 'mahabharatha-worker-0'],
  ['worker_0.of.x', 'worker-0-of-x'],
  ['-x-', 'x'],
  [`${'a'.repeat(62)}-b`, 'a'.repeat(62)],
  ['...', 'cell'],
])('[FL-01] the machine of cell %j is %j', (name, hostname) => {
  expect(toHostname(name)).toBe(hostname);
});
