import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { unenforced } from '../../core/enforcement.ts';
import { ENFORCEMENT, probeApple } from './probe.ts';

const folder = mkdtempSync(join(tmpdir(), 'hotcell-probe-'));
afterAll(() => rmSync(folder, { recursive: true }));

let count = 0;
function cliOf(version: string, status: string, code = 0): string {
  const file = join(folder, `container-${++count}`);
  const script = `#!/bin/sh\nif [ "$1" = --version ]; then echo '${version}'; exit 0; fi\necho '${status}'; exit ${code}\n`;
  writeFileSync(file, script);
  chmodSync(file, 0o755);
  return file;
}

const versionOf = (text: string): string => `container CLI version ${text} (build: release, commit: 0190097)`;

test('[MC-13, SC-04] every promise has somebody behind it', () => {
  expect(unenforced(ENFORCEMENT)).toEqual([]);
});

test.each([
  '{"status":"running","apiServerBuild":"release"}',
  '{"status":"running","server":{"version":"1.4.1"}}',
])('[MC-13] serves where the services run: %s', async (status) => {
  const { probe } = await probeApple({ cli: cliOf(versionOf('1.2.2'), status) });
  expect(probe).toMatchObject({ ok: true, runtime: 'container 1.2.2' });
  expect(probe.ok && probe.notes.map(({ text }) => text).join()).toMatch(/whole.*200 MB/);
});

test('[MC-13] says how to start services that are down', async () => {
  const { probe } = await probeApple({ cli: cliOf(versionOf('1.2.2'), '{"status":"unregistered"}', 1) });
  expect(probe).toEqual({
    ok: false,
    problem: 'the services of container do not run (unregistered)',
    remedy: 'Run: container system start',
  });
});

test.each([
  [versionOf('0.12.3'), 'container 0.12.3 is too old: 1.0.0 is the first that works'],
  ['Docker version 27.1.1, build 6312585', "is another program than Apple's container"],
])('[MC-13] %s is refused', async (version, problem) => {
  const { probe } = await probeApple({ cli: cliOf(version, '{"status":"running"}') });
  expect(probe).toMatchObject({ ok: false, problem: expect.stringContaining(problem) as string });
});

test('[MC-13] a command that is not there says how to get it', async () => {
  const { probe } = await probeApple({ cli: join(folder, 'none') });
  expect(probe).toMatchObject({ ok: false, remedy: expect.stringContaining('apple.cli') as string });
});

test.each([
  ['linux', 'arm64'],
  ['darwin', 'x64'],
])('[MC-03] is of no use on %s with %s, unless a command is named', async (platform, arch) => {
  const own = { platform: process.platform, arch: process.arch };
  Object.defineProperties(process, { platform: { value: platform }, arch: { value: arch } });
  const { probe } = await probeApple({ cli: undefined });
  Object.defineProperties(process, { platform: { value: own.platform }, arch: { value: own.arch } });
  expect(probe).toEqual({
    ok: false,
    problem: "Apple's container needs macOS on Apple silicon",
    remedy: 'Use the driver oci or docker here.',
  });
});
