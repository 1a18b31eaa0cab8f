import { PROMISES, PROMISE_MEANING, type Enforcement } from '../../src/core/enforcement.ts';
import { ENFORCEMENT as APPLE_ENFORCEMENT } from '../../src/drivers/apple/probe.ts';
import { toEnforcement as toDockerEnforcement } from '../../src/drivers/docker/probe.ts';
import { toSeccompProfile } from '../../src/drivers/linux/seccomp.ts';
import { toEnforcement } from '../../src/drivers/oci/probe.ts';
import type { RuntimeName } from '../../src/drivers/oci/runtime.ts';
import { toEnforcement as toPreloadEnforcement, type Layer } from '../../src/drivers/preload/probe.ts';
import { syscallTable } from '../../src/drivers/preload/syscall-numbers.ts';
import { DRIVER_NAMES, kindOf } from '../../src/drivers/registry.ts';
import { SubprocessDriver } from '../../src/drivers/subprocess/driver.ts';
import {
  APPLE_EXEMPTIONS,
  DOCKER_EXEMPTIONS,
  OCI_EXEMPTIONS,
  PRELOAD_EXEMPTIONS,
  SUBPROCESS_EXEMPTIONS,
} from '../../test/contract/exemptions.ts';
import { code, page, plain, table } from './markdown.ts';

/** Who keeps which promise, and what a driver is not held to. */
export async function driversPage(): Promise<string> {
  const subprocess = await new SubprocessDriver({
    stateDirectory: undefined,
    guest: '',
    tools: [],
    weaker: [],
  }).probe();
  if (!subprocess.ok) throw new Error(subprocess.problem);
  const oci = (name: RuntimeName, withCgroups: boolean): Enforcement =>
    toEnforcement({
      runtime: { name, path: '', label: '' },
      rootless: !withCgroups,
      cgroups: withCgroups
        ? { version: 2, top: '', root: '' }
        : { version: 'none', problem: '', delegable: true },
    });
  const docker = (ownKernel: boolean, limits: boolean): Enforcement =>
    toDockerEnforcement(
      { ownKernel, seccomp: toSeccompProfile('x64') },
      { CpuCfsQuota: limits, MemoryLimit: limits, PidsLimit: limits },
    );
  const preload = (isRoot: boolean, landlock: number): Enforcement => {
    const numbers = syscallTable('x64');
    if (numbers === undefined) throw new Error('x64 has a table');
    const layer: Layer = {
      kind: 'linux',
      table: numbers,
      kernel: { landlock, seccomp: true, notify: true },
      isRoot,
    };
    return toPreloadEnforcement(layer, { cpus: 1 });
  };
  const columns: readonly (readonly [heading: string, enforcement: Enforcement])[] = [
    ['oci: crun, runc', oci('crun', true)],
    ['oci: runsc', oci('runsc', true)],
    ['oci: crun, rootless, nothing delegated', oci('crun', false)],
    ['docker', docker(false, true)],
    ['docker: runsc', docker(true, true)],
    ['docker: rootless, nothing delegated', docker(false, false)],
    ['apple', APPLE_ENFORCEMENT],
    ['preload', preload(true, 7)],
    ['preload: not root', preload(false, 7)],
    ['preload: no Landlock', preload(false, 0)],
    ['preload: macOS', toPreloadEnforcement({ kind: 'seatbelt' }, { cpus: 1 })],
    ['subprocess', subprocess.enforcement],
  ];
  const exemptions = [
    ...Object.entries(OCI_EXEMPTIONS).map(([name, exempt]) => [`oci: ${name}`, exempt] as const),
    ...Object.entries(DOCKER_EXEMPTIONS).map(([name, exempt]) => [`docker: ${name}`, exempt] as const),
    ['apple', APPLE_EXEMPTIONS] as const,
    ['preload', PRELOAD_EXEMPTIONS] as const,
    ['subprocess', SUBPROCESS_EXEMPTIONS] as const,
  ];
  return page(
    'Drivers',
    [
      'src/core/enforcement.ts',
      'src/drivers/registry.ts',
      'src/drivers/oci/probe.ts',
      'src/drivers/docker/probe.ts',
      'src/drivers/apple/probe.ts',
      'src/drivers/preload/probe.ts',
      'src/drivers/subprocess/driver.ts',
      'test/contract/exemptions.ts',
    ],
    'What each driver does and does not protect against is in [SECURITY.md](../SECURITY.md). ' +
      '`hotcell doctor` prints this table for the machine it runs on.',
    '## What each driver is like',
    table(
      ['Driver', 'Walls around', 'Images', 'Shared by default', 'Terminals', 'Workers', 'Tried by `auto`'],
      DRIVER_NAMES.map((name) => {
        const { traits, auto } = kindOf(name);
        const { confines, images, sharesByDefault, terminals, workers } = traits;
        const marks = [images, sharesByDefault, terminals, workers].map((is) => (is ? 'yes' : 'no'));
        return [code(name), confines, ...marks, typeof auto === 'string' ? auto : auto.join(', ')];
      }),
    ),
    '## Who keeps which promise',
    '`kernel` is the kernel of the host. `hypervisor` is a second kernel between the program and the host. ' +
      '`supervisor` is the server, which watches and kills. `nobody` means that cells are refused ' +
      '(`POLICY_UNENFORCEABLE`) unless the promise is given up by name in the setting `weaker`.',
    table(
      ['Promise', 'Meaning', ...columns.map(([heading]) => heading)],
      PROMISES.map((promise) => [
        code(promise),
        plain(PROMISE_MEANING[promise]),
        ...columns.map(([, enforcement]) => enforcement[promise]),
      ]),
    ),
    '## What a driver is not held to',
    'One suite, [test/contract](../test/contract/driver-contract.ts), runs over every driver and runtime. These are the exceptions.',
    table(
      ['Driver', 'Test', 'Reason'],
      exemptions.flatMap(([name, exempt]) => {
        const reasons = Object.entries(exempt).map(([test, reason]) => [name, plain(test), plain(reason)]);
        return reasons.length > 0 ? reasons : [[name, 'none', '']];
      }),
    ),
  );
}
