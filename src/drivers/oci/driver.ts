import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  fillPlaceholders,
  type Cell,
  type CellSpec,
  type CellSummary,
  type Isolation,
} from '../../core/cell.ts';
import type { Driver, Probe } from '../../core/driver.ts';
import { requireEnforcement, type Promised } from '../../core/enforcement.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { OciCell } from './cell.ts';
import { CellCgroup, LEAF, hierarchiesOf, makeInstanceCgroup, removeCgroups } from './cgroup.ts';
import { Channel } from './channel.ts';
import { toConfigJson, toMaskablePaths, type MaskablePaths } from './config-json.ts';
import { startExec } from './exec.ts';
import { FifoKits, toChannelMounts, type FifoKit } from './fifo-kit.ts';
import { deadInstances, defaultStateDirectory, openInstance, type Instance } from '../process/instance.ts';
import { IdentityRange } from './identity.ts';
import { MountNamespace } from './mount-namespace.ts';
import { probeOci, toHiddenMounts, type OciHost } from './probe.ts';
import { BASE_ENV, CHANNEL_IN_CELL, GUEST_IN_CELL, makeRootfs, type Rootfs, type Tool } from './rootfs.ts';
import { RuntimeCli, toContainerIds, type RuntimeName } from './runtime.ts';
import { toSeccompProfile } from './seccomp.ts';

export interface OciOptions {
  readonly runtime: RuntimeName | 'auto';
  readonly stateDirectory: string | undefined;
  /** Folder to use as root instead of the host's own /usr. */
  readonly rootfs: string | undefined;
  /** Folder with the guest files, mounted into every cell. */
  readonly guest: string;
  readonly tools: readonly Tool[];
  /** Promises that the operator gave up by name. */
  readonly weaker: readonly Promised[];
  readonly log: Log;
}

/** What exists once the driver has been used for the first time. */
interface Opened {
  readonly host: OciHost;
  readonly instance: Instance;
  readonly rootfs: Rootfs;
  readonly kits: FifoKits;
  readonly identities: IdentityRange;
  readonly namespace: MountNamespace | undefined;
  readonly cli: RuntimeCli;
  readonly isolation: Isolation;
  readonly paths: MaskablePaths;
}

const WORKDIR = '/tmp';
const cgroupPathOf = (instanceId: string): string => `/hotcell/${instanceId}`;

/** Cells from an OCI runtime, without any daemon. */
export class OciDriver implements Driver {
  readonly name = 'oci';
  readonly #options: OciOptions;
  readonly #cells = new Map<string, OciCell>();
  #opening: Promise<Opened> | undefined;

  constructor(options: OciOptions) {
    this.#options = options;
  }

  async probe(): Promise<Probe> {
    return (await probeOci(this.#options)).probe;
  }

  list(): CellSummary[] {
    return [...this.#cells.values()].map(({ id, name }) => ({ id, name }));
  }

  async create(spec: CellSpec): Promise<Cell> {
    this.#opening ??= this.#open();
    const opened = await this.#opening;
    const id = randomBytes(6).toString('hex');
    const identity = opened.identities.next();
    const kit = await opened.kits.take(identity.hostId);
    const bundle = join(opened.instance.directory, 'cells', id);
    const cgroupPath = join(cgroupPathOf(opened.instance.id), id);
    const { cgroups } = opened.host;
    const cgroup =
      cgroups.version === 'none'
        ? undefined
        : await CellCgroup.create(cgroups, cgroupPath, spec.limits, opened.cli.traits);
    await this.#writeBundle(opened, { spec, bundle, identity, kit, cgroupPath });

    const channel = new Channel(kit, ['out', 'err', 'status']);
    const cell = new OciCell({
      id,
      spec,
      isolation: opened.isolation,
      cli: opened.cli,
      runtime: opened.cli.run(id, bundle),
      channel,
      cgroup,
      startExec: (request) =>
        startExec(
          {
            cli: opened.cli,
            kits: opened.kits,
            cgroups,
            cellCgroup: join(cgroupPath, LEAF),
            cellId: id,
            bundle,
          },
          { ...request, env: { ...BASE_ENV, ...request.env } },
          { identity, limits: spec.limits, usage: () => cell.usage() },
        ),
      cleanUp: async () => {
        this.#cells.delete(id);
        if (opened.cli.knows(id)) await opened.cli.delete(id);
        await cgroup?.remove(hierarchiesOf(cgroups), cgroupPath);
        await rm(bundle, { recursive: true, force: true });
        opened.kits.giveBack(kit);
      },
    });
    this.#cells.set(id, cell);
    // A cell that fails to clean up after itself is caught by the next start; it must not end the server.
    cell.gone.catch((error: unknown) =>
      this.#options.log.error({ cell: id, error: String(error) }, 'clean-up failed'),
    );
    if (spec.main === undefined) await waitForIdle(cell);
    return cell;
  }

  async #writeBundle(
    opened: Opened,
    cell: {
      spec: CellSpec;
      bundle: string;
      identity: ReturnType<IdentityRange['next']>;
      kit: FifoKit;
      cgroupPath: string;
    },
  ): Promise<void> {
    const { spec, identity } = cell;
    const { ownKernel } = opened.cli.traits;
    const places = { workdir: WORKDIR, guest: GUEST_IN_CELL };
    const argv =
      spec.main === undefined
        ? ['sh', '{guest}/idle.sh']
        : ['sh', '{guest}/init.sh', spec.touch ?? '', ...spec.main.argv];
    const env = Object.entries({ ...BASE_ENV, ...spec.main?.env });
    const config = toConfigJson(
      {
        argv: argv.map((word) => fillPlaceholders(word, places)),
        env: Object.fromEntries(env.map(([name, value]) => [name, fillPlaceholders(value, places)])),
        hostname: spec.name,
        rootfs: opened.rootfs.path,
        identity,
        limits: spec.limits,
        readOnly: opened.rootfs.readOnly,
        devices: opened.rootfs.devices,
        channel: toChannelMounts(cell.kit, CHANNEL_IN_CELL, ownKernel),
        cgroupsPath: opened.host.cgroups.version === 'none' ? undefined : join(cell.cgroupPath, LEAF),
        // gVisor's kernel is the filter; it would take ours only without the errno that makes libraries fall back.
        seccomp: ownKernel ? undefined : toSeccompProfile(process.arch),
        limitsProcesses: ownKernel,
        labels: { 'hotcell.owner': opened.instance.id, 'hotcell.kind': spec.kind, 'hotcell.name': spec.name },
      },
      opened.paths,
    );
    await mkdir(cell.bundle, { recursive: true, mode: 0o711 });
    await writeFile(join(cell.bundle, 'config.json'), JSON.stringify(config));
  }

  async #open(): Promise<Opened> {
    const { probe, host } = await probeOci(this.#options);
    if (!probe.ok || host === undefined) {
      const { problem, remedy } = probe.ok ? { problem: 'no host', remedy: '' } : probe;
      throw new HotcellError('DRIVER_UNAVAILABLE', problem, { hint: remedy });
    }
    requireEnforcement(probe.enforcement, this.#options.weaker);
    const instance = await openInstance(this.#options.stateDirectory ?? (await defaultStateDirectory()));
    const namespace = host.hidden === undefined ? undefined : await MountNamespace.open(host.hidden);
    await makeInstanceCgroup(host.cgroups, cgroupPathOf(instance.id));
    const { guest, tools, rootfs } = this.#options;
    return {
      host,
      instance,
      namespace,
      rootfs: await makeRootfs({ directory: join(instance.directory, 'rootfs'), base: rootfs, guest, tools }),
      kits: new FifoKits(join(instance.directory, 'kits')),
      identities: new IdentityRange(host.rootless),
      cli: this.#cliFor(host, instance, namespace),
      isolation: { driver: this.name, runtime: probe.runtime, enforcement: probe.enforcement },
      paths: toMaskablePaths(existsSync),
    };
  }

  #cliFor(host: OciHost, instance: Instance, namespace: MountNamespace | undefined): RuntimeCli {
    return new RuntimeCli({
      runtime: host.runtime,
      stateDirectory: join(instance.directory, 'runtime'),
      prefix: namespace?.prefix ?? [],
      cgroups: host.cgroups.version !== 'none',
    });
  }

  async reclaim(): Promise<string[]> {
    const dead = await deadInstances(this.#options.stateDirectory ?? (await defaultStateDirectory()));
    if (dead.length === 0) return [];
    const { host } = await probeOci(this.#options);
    if (host === undefined) return [];
    const hidden = toHiddenMounts(host);
    await using namespace = hidden === undefined ? undefined : await MountNamespace.open(hidden);
    const reclaimed: string[] = [];
    for (const instance of dead) {
      const cli = this.#cliFor(host, instance, namespace);
      const entries = await readdir(join(instance.directory, 'runtime')).catch(() => []);
      for (const id of toContainerIds(entries)) {
        // gVisor's delete waits in vain for a sandbox that it has to kill itself.
        await cli.kill(id);
        await cli.delete(id);
        reclaimed.push(id);
      }
      await removeCgroups(hierarchiesOf(host.cgroups), cgroupPathOf(instance.id));
      await rm(instance.directory, { recursive: true, force: true });
    }
    return reclaimed;
  }

  async close(): Promise<void> {
    if (this.#opening === undefined) return;
    const opened = await this.#opening.catch(() => undefined);
    if (opened === undefined) return;
    await Promise.all([...this.#cells.values()].map((cell) => cell.dispose()));
    await removeCgroups(hierarchiesOf(opened.host.cgroups), cgroupPathOf(opened.instance.id));
    await opened.namespace?.[Symbol.asyncDispose]();
    await rm(opened.instance.directory, { recursive: true, force: true });
    this.#opening = undefined;
  }
}

/** An idle cell says one byte when its init runs; only then can the runtime start an exec in it. */
async function waitForIdle(cell: OciCell): Promise<void> {
  for await (const event of cell.main.events) if (event.type === 'stdout') return;
  throw new HotcellError('CELL_START_FAILED', `cell ${cell.name} ended at once`);
}
