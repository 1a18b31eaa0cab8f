import { defineConfig } from 'vitest/config';

const slow = { testTimeout: 120_000, hookTimeout: 120_000 };

export default defineConfig({
  test: {
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
        // Real cells on a small machine: one file after the other, so that load does not turn into timeouts.
        test: {
          name: 'cells',
          include: ['test/{contract,attacks,faults,e2e}/**/*.test.ts'],
          fileParallelism: false,
          globalSetup: ['test/support/engine-setup.ts'],
          ...slow,
        },
      },
    ],
  },
});
