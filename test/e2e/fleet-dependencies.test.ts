import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { mahabharatha, OCI, SUBPROCESS } from '../support/fleet-command.ts';
import { FleetRepository, toTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { testThatNeeds } from '../support/needs.ts';

const files = {
  'package.json': JSON.stringify({ name: 'shop', private: true, dependencies: { 'left-pad': '1.0.0' } }),
};

/** Takes the place of npm in plain processes: in a cell it is the real one, without a network. */
function layNpm(repository: FleetRepository): string {
  const bin = join(repository.home, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\necho "npm error no way out" >&2\nexit 1\n');
  chmodSync(join(bin, 'npm'), 0o755);
  return `${bin}:${process.env['PATH'] ?? ''}`;
}

describe.each([
  { name: 'oci', args: OCI, missing: whyNoOci, before: ', though network.allow has no npm' },
  { name: 'subprocess', args: SUBPROCESS, missing: undefined, before: '' },
])('dependencies that cannot be installed, $name', ({ args, missing, before }) => {
  testThatNeeds(missing)('[FL-03] are said, once, and the work goes on without them', async () => {
    using repository = FleetRepository.make({ tasks: [toTask('A', 1), toTask('B', 1)], files });
    const { code, stderr } = await mahabharatha(repository, ['kurukshetra', ...args, '--workers', '2'], {
      env: { PATH: layNpm(repository) },
    });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stderr.split('\n').filter((line) => line.includes('dependencies'));
    expect(lines).toEqual([
      `fleet: dependencies: npm install --no-package-lock --no-audit --no-fund${before}`,
      expect.stringMatching(
        /^fleet: ! dependencies not installed: npm install .* ended with \d+: .*npm error /,
      ),
    ]);
    expect(repository.events()).toContain('dependencies_failed');
    expect(Object.values(repository.readState().setup_problems ?? {})).toEqual([
      expect.stringContaining('npm error'),
    ]);
  });
});

// Left to itself, npm waits for more than a minute between its attempts, and the task with it.
test('[FL-03] where plain processes do not reach the registry, npm gives up soon, and it is said', async () => {
  let connections = 0;
  const registry = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(registry, 'listening');
  try {
    const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
    const npmrc = { '.npmrc': `registry=${url}\n` };
    using repository = FleetRepository.make({ tasks: [toTask('A', 1)], files: { ...files, ...npmrc } });
    const { code, stderr } = await mahabharatha(repository, ['kurukshetra', ...SUBPROCESS, '--workers', '1']);
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    expect(stderr).toMatch(/! dependencies not installed: npm install .* ended with \d+: .*npm error /);
    // It has tried again all the same: a network may fail for a moment.
    expect(connections).toBeGreaterThan(1);
  } finally {
    registry.close();
  }
}, 60_000);
