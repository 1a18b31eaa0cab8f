import { expect, test } from 'vitest';
import { fleetPaths, requireFeatureName, workerBranch } from './names.ts';

test.each(['login', 'a', 'A1._-b', '2fa'])('[FL-01] %s is a feature', (name) => {
  expect(requireFeatureName(name)).toBe(name);
  expect(workerBranch(name, 3)).toBe(`mahabharatha/${name}/worker-3`);
});

test.each([
  '',
  '.',
  '..',
  'a..b',
  '../x',
  'a/b',
  '-a',
  'a b',
  'a.lock',
  'a.',
  'ä',
  'a\n',
  '@{',
  'x'.repeat(101),
])('[FL-01] %j is none, and no path comes of it', (name) => {
  expect(() => requireFeatureName(name)).toThrow('is no name for a feature');
  expect(() => fleetPaths('/repo', name)).toThrow('is no name for a feature');
});
