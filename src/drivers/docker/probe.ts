import { statfs } from 'node:fs/promises';
import { release } from 'node:os';
import * as z from 'zod';
import type { Fact, Note } from '../../core/driver.ts';
import { enforcedBy, type Enforcement } from '../../core/enforcement.ts';
import { toHotcellError } from '../../core/errors.ts';
import { toSeccompProfile, type SeccompProfile } from '../linux/seccomp.ts';
import type { Endpoint } from './endpoint.ts';
import { Engine } from './engine.ts';
import type { DockerOptions } from './site.ts';
import { unusable, type Probed } from '../probed.ts';

/**
 * As much of an engine's own description as we use; Podman leaves some of it out.
 * SECURITY: a limit that an engine does not claim to enforce is one that it does not enforce.
 */
const Info = z.object({
  OSType: z.string(),
  Architecture: z.string().default(''),
  KernelVersion: z.string().default(''),
  CgroupDriver: z.string().default(''),
  CgroupVersion: z.string().default('1'),
  Driver: z.string().default(''),
  DockerRootDir: z.string().default(''),
  Runtimes: z.record(z.string(), z.unknown()).default({}),
  DefaultRuntime: z.string().default('runc'),
  SecurityOptions: z.array(z.string()).nullish(),
  MemoryLimit: z.boolean().default(false),
  SwapLimit: z.boolean().default(false),
  CpuCfsQuota: z.boolean().default(false),
  PidsLimit: z.boolean().default(false),
});
type Info = z.infer<typeof Info>;

const Version = z.object({
  Version: z.string(),
  Components: z.array(z.object({ Name: z.string() })).nullish(),
});

/** What the driver has to work with. */
export interface DockerHost {
  readonly engine: Engine;
  readonly label: string;
  readonly runtime: string;
  /** The runtime brings a kernel of its own. */
  readonly ownKernel: boolean;
  /** Cells have the kernel of this machine, and not that of a virtual one or of another. */
  readonly sharesKernel: boolean;
  /** Ids inside are other ids outside, so that any may be used. */
  readonly mapsUsers: boolean;
  /** Podman reads the filter of system calls from a file; Docker takes it as it is. */
  readonly isPodman: boolean;
  readonly seccomp: SeccompProfile | undefined;
}

const ANSWER_MS = 5000;
const OWN_KERNEL = /runsc|gvisor|kata/;
const GiB = 1024 ** 3;
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86_64: 'x64',
  amd64: 'x64',
  aarch64: 'arm64',
  arm64: 'arm64',
};

export async function probeDocker(
  options: Pick<DockerOptions, 'endpoint' | 'runtime'>,
): Promise<Probed<DockerHost>> {
  const engine = await Engine.connect(options.endpoint);
  let version: z.infer<typeof Version>;
  let info: Info;
  try {
    version = Version.parse(await engine.call('tell its version', (docker) => docker.version(), ANSWER_MS));
    info = Info.parse(await engine.call('describe itself', (docker) => docker.info(), ANSWER_MS));
  } catch (error) {
    const { label, origin } = options.endpoint;
    if (error instanceof z.ZodError) {
      return unusable(
        `the engine at ${label} answers with something else than an engine does`,
        `Check ${origin}: an engine must listen there.`,
      );
    }
    const { message, hint } = toHotcellError(error);
    return unusable(message, hint);
  }
  if (info.OSType !== 'linux') {
    return unusable(`the engine runs ${info.OSType} containers`, 'Switch the engine to Linux containers.');
  }
  const runtime = options.runtime ?? info.DefaultRuntime;
  if (options.runtime !== undefined && !Object.hasOwn(info.Runtimes, options.runtime)) {
    const known = Object.keys(info.Runtimes).join(', ');
    return unusable(
      `the engine knows no runtime ${options.runtime}, only ${known}`,
      `Add it to "runtimes" in the engine's daemon.json and restart the engine, or correct docker.runtime.`,
    );
  }
  const isPodman = version.Components?.some(({ Name }) => Name.startsWith('Podman')) === true;
  const ownKernel = OWN_KERNEL.test(runtime);
  const security = info.SecurityOptions ?? [];
  const has = (name: string): boolean =>
    security.some((option) => option.split(',').includes(`name=${name}`));
  const host: DockerHost = {
    engine,
    label: `${isPodman ? 'Podman' : 'Docker'} ${version.Version} with ${runtime}`,
    runtime,
    ownKernel,
    isPodman,
    sharesKernel: options.endpoint.local && !ownKernel && info.KernelVersion === release(),
    mapsUsers: has('rootless') || has('userns'),
    seccomp:
      has('seccomp') && !ownKernel ? toSeccompProfile(ARCHITECTURES[info.Architecture] ?? '') : undefined,
  };
  return {
    ok: true,
    probe: {
      ok: true,
      runtime: host.label,
      enforcement: toEnforcement(host, info),
      notes: toNotes(info, host),
      facts: await toFacts(info, options.endpoint, has('rootless')),
    },
    host,
  };
}

export function toEnforcement(
  host: Pick<DockerHost, 'ownKernel' | 'seccomp'>,
  info: Pick<Info, 'CpuCfsQuota' | 'MemoryLimit' | 'PidsLimit'>,
): Enforcement {
  return enforcedBy(host.ownKernel ? 'hypervisor' : 'kernel', {
    cpus: info.CpuCfsQuota ? 'kernel' : 'nobody',
    memoryBytes: info.MemoryLimit ? 'kernel' : 'nobody',
    processes: host.ownKernel ? 'hypervisor' : info.PidsLimit ? 'kernel' : 'nobody',
    syscalls: host.ownKernel ? 'hypervisor' : host.seccomp === undefined ? 'nobody' : 'kernel',
  });
}

function toNotes(info: Info, host: DockerHost): Note[] {
  const notes: Note[] = [];
  if (!info.MemoryLimit || !info.PidsLimit || !info.CpuCfsQuota) {
    notes.push({
      text: 'the engine cannot limit memory, processes or CPU',
      remedy: 'Give it cgroups: a delegated cgroup v2 for a rootless engine, or an engine that runs as root.',
    });
  }
  if (!info.SwapLimit && info.MemoryLimit) notes.push({ text: 'swap is not limited by this engine' });
  if (host.seccomp === undefined && !host.ownKernel) {
    notes.push({
      text: 'system calls are not filtered',
      remedy: 'Use an engine with seccomp, on x86_64 or arm64.',
    });
  }
  return notes;
}

async function toFacts(info: Info, endpoint: Endpoint, rootless: boolean): Promise<Fact[]> {
  return [
    { name: 'engine', value: `${endpoint.label} (${endpoint.origin})` },
    { name: 'cgroups', value: `v${info.CgroupVersion}, ${info.CgroupDriver || 'unknown'} driver` },
    { name: 'runtimes', value: Object.keys(info.Runtimes).join(', ') || info.DefaultRuntime },
    { name: 'rootless', value: rootless ? 'yes' : 'no' },
    { name: 'disk', value: await describeDisk(info, endpoint) },
  ];
}

async function describeDisk(info: Info, endpoint: Endpoint): Promise<string> {
  const place = `${info.DockerRootDir || 'unknown place'} (${info.Driver})`;
  // Only where the folder is one of this machine can we look.
  const stats = endpoint.local ? await statfs(info.DockerRootDir).catch(() => undefined) : undefined;
  if (stats === undefined) return place;
  const gigabytes = (blocks: number): string => (((blocks * stats.bsize) / GiB) | 0).toString();
  return `${place}, ${gigabytes(stats.bavail)} of ${gigabytes(stats.blocks)} GB free`;
}
