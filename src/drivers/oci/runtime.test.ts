import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RuntimeCli, toContainerIds, type RuntimeName } from './runtime.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-runtime-'));
  // Stands in for any runtime: says how it was called and with which environment.
  writeFileSync(
    join(folder, 'runtime'),
    '#!/bin/sh\nprintf "%s\\n" "$@"\nenv | cut -d= -f1 | grep -v "^_$" >&2\n',
  );
  chmodSync(join(folder, 'runtime'), 0o755);
});
afterAll(() => rmSync(folder, { recursive: true }));

function makeCli(
  name: RuntimeName,
  options: { cgroups?: boolean; prefix?: readonly string[] } = {},
): RuntimeCli {
  return new RuntimeCli({
    runtime: { name, path: join(folder, 'runtime'), label: name },
    stateDirectory: join(folder, 'state'),
    enter: () => Promise.resolve(options.prefix ?? []),
    cgroups: options.cgroups ?? true,
  });
}

async function flagsOf(name: RuntimeName, options: { cgroups?: boolean } = {}): Promise<string[]> {
  const words = (await makeCli(name, options).kill('c1')).stdout.trim().split('\n');
  expect(words.slice(0, 2)).toEqual(['--root', join(folder, 'state')]);
  expect(words.slice(-3)).toEqual(['kill', 'c1', 'KILL']);
  return words.slice(2, -3);
}

const GVISOR_FLAGS = ['--network=none', '--host-fifo=open', '--file-access-mounts=exclusive'];

describe('the command line', () => {
  test.each<[RuntimeName, boolean, string[]]>([
    ['crun', true, []],
    ['crun', false, ['--cgroup-manager=disabled']],
    ['runc', true, []],
    ['runc', false, []],
    ['runsc', true, GVISOR_FLAGS],
    ['runsc', false, [...GVISOR_FLAGS, '--ignore-cgroups']],
  ])('[SC-03] %s, cgroups %s', async (name, cgroups, flags) => {
    expect(await flagsOf(name, { cgroups })).toEqual(flags);
  });

  test('[SC-03] the way into the mount namespace comes before the runtime', async () => {
    const { stdout } = await makeCli('crun', { prefix: ['env', 'HELPED=1'] }).kill('c1');
    expect(stdout).toContain('c1');
  });

  test('[CX-19] nothing of our environment reaches the runtime', async () => {
    const { stderr } = await makeCli('crun').kill('c1');
    expect(stderr.trim().split('\n').toSorted()).toEqual(['LC_ALL', 'PATH', 'PWD']);
  });

  test('[CX-12] run is started where the keeper is, without the way there', () => {
    const words = makeCli('crun', { prefix: ['env', 'HELPED=1'] }).toRunWords('c1', '/bundle', {
      shared: true,
    });
    expect(words.slice(-4)).toEqual(['run', '--bundle', '/bundle', 'c1']);
    expect(words).not.toContain('env');
  });
});

describe('traits', () => {
  test.each<[RuntimeName, boolean]>([
    ['crun', false],
    ['runc', false],
    ['runsc', true],
  ])('%s brings a kernel of its own: %s', (name, ownKernel) => {
    expect(makeCli(name).traits.ownKernel).toBe(ownKernel);
  });
});

describe('records of containers', () => {
  test.each<[string, string[], string[]]>([
    ['folders of crun and runc', ['a1', 'b2'], ['a1', 'b2']],
    ['files of runsc', ['a1_sandbox:a1.state', 'a1_sandbox:a1.lock'], ['a1']],
    ['both', ['b2', 'a1_sandbox:a1.state'], ['b2', 'a1']],
    ['hidden files', ['.lock', 'a1'], ['a1']],
    ['nothing', [], []],
  ])('[SC-02] %s', (_what, entries, ids) => {
    expect(toContainerIds(entries)).toEqual(ids);
  });

  test.each([
    ['a1', 'a1'],
    ['b2', 'b2_sandbox:b2.state'],
  ])('[SC-02] %s is known by %s', (id, record) => {
    mkdirSync(join(folder, 'state', record), { recursive: true });
    expect([makeCli('crun').knows(id), makeCli('crun').knows('zz')]).toEqual([true, false]);
  });
});
