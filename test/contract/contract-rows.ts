import type { Enforcement } from '../../src/core/enforcement.ts';
import { ENFORCEMENT as APPLE_ENFORCEMENT } from '../../src/drivers/apple/probe.ts';
import { toEnforcement as toDockerEnforcement } from '../../src/drivers/docker/probe.ts';
import { toSeccompProfile } from '../../src/drivers/linux/seccomp.ts';
import { toEnforcement } from '../../src/drivers/oci/probe.ts';
import type { RuntimeName } from '../../src/drivers/oci/runtime.ts';
import { toEnforcement as toPreloadEnforcement, type Layer } from '../../src/drivers/preload/probe.ts';
import { syscallTable } from '../../src/drivers/linux/syscall-numbers.ts';
import type { DriverName } from '../../src/drivers/registry.ts';
import { ENFORCEMENT as SUBPROCESS_ENFORCEMENT } from '../../src/drivers/subprocess/driver.ts';
import type { Exemptions } from './driver-contract.ts';
import {
  APPLE_EXEMPTIONS,
  DOCKER_EXEMPTIONS,
  OCI_EXEMPTIONS,
  PRELOAD_EXEMPTIONS,
  SUBPROCESS_EXEMPTIONS,
} from './exemptions.ts';

/** A driver in the contract, by the ways it can run; the one without a name is the usual one. */
export interface ContractRow {
  /** Who keeps which promise. */
  readonly enforcement: Readonly<Record<string, Enforcement>>;
  /** What it is not held to. */
  readonly exempt: Readonly<Record<string, Exemptions>>;
}

function oci(name: RuntimeName, withCgroups: boolean): Enforcement {
  return toEnforcement({
    runtime: { name, path: '', label: '' },
    rootless: !withCgroups,
    cgroups: withCgroups
      ? { version: 2, top: '', root: '' }
      : { version: 'none', problem: '', delegable: true },
  });
}

function docker(ownKernel: boolean, limits: boolean): Enforcement {
  return toDockerEnforcement(
    { ownKernel, seccomp: toSeccompProfile('x64') },
    { CpuCfsQuota: limits, MemoryLimit: limits, PidsLimit: limits },
  );
}

function preload(isRoot: boolean, landlock: number): Enforcement {
  const numbers = syscallTable('x64');
  if (numbers === undefined) throw new Error('x64 has a table');
  const kernel = { landlock, seccomp: true, notify: true };
  const layer: Layer = { kind: 'linux', table: numbers, kernel, isRoot };
  return toPreloadEnforcement(layer, { cpus: 1 });
}

/** Complete by its type: a driver of the registry without a row does not compile. */
export const CONTRACT_ROWS: Readonly<Record<DriverName, ContractRow>> = {
  oci: {
    enforcement: {
      'crun, runc': oci('crun', true),
      runsc: oci('runsc', true),
      'crun, rootless, nothing delegated': oci('crun', false),
    },
    exempt: OCI_EXEMPTIONS,
  },
  apple: { enforcement: { '': APPLE_ENFORCEMENT }, exempt: { '': APPLE_EXEMPTIONS } },
  docker: {
    enforcement: {
      '': docker(false, true),
      runsc: docker(true, true),
      'rootless, nothing delegated': docker(false, false),
    },
    exempt: DOCKER_EXEMPTIONS,
  },
  preload: {
    enforcement: {
      '': preload(true, 7),
      'not root': preload(false, 7),
      'no Landlock': preload(false, 0),
      macOS: toPreloadEnforcement({ kind: 'seatbelt' }, { cpus: 1 }),
    },
    exempt: { '': PRELOAD_EXEMPTIONS },
  },
  subprocess: { enforcement: { '': SUBPROCESS_ENFORCEMENT }, exempt: { '': SUBPROCESS_EXEMPTIONS } },
};
