import { defineConfig } from 'vitest/config';

const slow = { testTimeout: 120_000, hookTimeout: 120_000 };

export default defineConfig({
  test: {
    maxWorkers: 2,
    // Time for a private Docker engine to stop.
    teardownTimeout: 60_000,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/specification/**/*.test.ts', 'test/architecture.test.ts'],
          testTimeout: 30_000,
        },
      },
      { test: { name: 'guest', include: ['guest/**/*.test.ts'], ...slow } },
      {
        test: {
          name: 'cells',
          include: ['test/{contract,attacks,faults,e2e}/**/*.test.ts'],
          // After the quick ones, one file at a time: on a small machine two of them turn load into timeouts.
          sequence: { groupOrder: 1 },
          maxWorkers: 1,
          globalSetup: ['test/support/engine-setup.ts'],
          ...slow,
        },
      },
    ],
  },
});
