import { setTimeout as sleep } from 'node:timers/promises';
import {
  fillRequest,
  withFolders,
  type Cell,
  type CellSpec,
  type CellUsage,
  type Freezer,
  type Isolation,
  type LastingCell,
} from '../../core/cell.ts';
import { HotcellError, toHotcellError } from '../../core/errors.ts';
import type { Exec, ExecRequest, KillCause, Usage } from '../../core/exec.ts';
import type { Account, AgentExec } from '../agent/agent-exec.ts';
import { AgentLink, type LastingLink } from '../agent/agent-link.ts';
import { KnownCell } from '../known-cell.ts';
import { PATHS_IN_CELL, WORKDIR_IN_CELL } from '../linux/cell-paths.ts';
import type { CellCgroup } from './cgroup.ts';
import type { Channel } from './channel.ts';
import { toOutcome } from './outcome.ts';
import type { RuntimeProcess } from './keeper.ts';
import type { RuntimeCli } from './runtime.ts';

const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const GRACE_MS = 2000;

export interface OciCellParts {
  readonly id: string;
  readonly spec: CellSpec;
  readonly isolation: Isolation;
  readonly cli: RuntimeCli;
  readonly runtime: RuntimeProcess;
  readonly channel: Channel;
  readonly cgroup: CellCgroup | undefined;
  /** Of a cell that outlives us. */
  readonly lasting?: LastingLink & { readonly record: string };
  /** Removes the bundle, the cgroup and the channel once the runtime has ended. */
  cleanUp(): Promise<void>;
}

const STREAMS_END_MS = 1000;

/** A container whose runtime process stays with it; when that process has ended, nothing of the cell runs. */
export class OciCell extends KnownCell implements Cell {
  readonly workdir = WORKDIR_IN_CELL;
  readonly main: Exec | undefined;
  readonly gone: Promise<void>;
  readonly lasting?: LastingCell;
  readonly limitMemory?: (bytes: number) => Promise<void>;
  readonly freezer: Freezer = { freeze: () => this.#freeze(), thaw: () => this.#thaw() };
  readonly #parts: OciCellParts;
  /** In a cell that takes commands. */
  readonly #link: AgentLink | undefined;
  #killCause: KillCause | undefined;
  #mainEnded = false;
  #runtimeEnded = false;
  #frozen = false;
  #leftAlone = false;

  constructor(parts: OciCellParts) {
    super({ ...parts, name: parts.spec.name });
    this.#parts = parts;
    const { channel, cgroup, spec } = parts;
    if (cgroup !== undefined)
      this.limitMemory = (bytes) => {
        cgroup.limitMemory(bytes);
        return Promise.resolve();
      };
    if (spec.main === undefined) {
      this.#link = new AgentLink({
        cellName: spec.name,
        write: (bytes) => channel.write(bytes),
        ...(cgroup === undefined ? {} : { countReached: () => cgroup.counts() }),
        giveUp: () => this.dispose(),
        ...(parts.lasting === undefined ? {} : { lasting: parts.lasting }),
      });
      if (parts.lasting !== undefined)
        this.lasting = {
          record: parts.lasting.record,
          resume: (number, fromByte) => this.#link?.resume(number, fromByte),
          endAfter: (deadline) => this.#link?.endAfter(deadline),
        };
      void this.#listen(this.#link);
    } else {
      this.main = {
        events: channel.queue,
        write: (bytes) => channel.write(bytes),
        closeStdin: () => channel.closeStdin(),
        kill: (cause) => this.#kill(cause),
        usage: () => Promise.resolve(this.#readUsage()),
        ended: channel.ended,
      };
    }
    this.gone = this.#live();
  }

  async #listen(link: AgentLink): Promise<void> {
    try {
      for await (const event of this.#parts.channel.queue)
        if (event.type === 'stdout') link.receive(event.bytes);
      link.close(new HotcellError('CELL_LOST', `cell ${this.name} has ended`));
    } catch (error) {
      link.close(toHotcellError(error));
    }
  }

  /** Resolves when the cell can take commands. */
  async ready(): Promise<void> {
    await this.#link?.untilReady();
  }

  /** In a cell with slots: resolves when they are there, with the numbers that those who make its runs have in it. */
  async openSlots(plan: string): Promise<readonly number[]> {
    const words = await this.#link?.openSlots(plan);
    return (words ?? '').split(' ').map(Number);
  }

  /** Has a run made in a slot. */
  begin(order: readonly string[], account: Account): AgentExec {
    if (this.#link === undefined) throw new HotcellError('INTERNAL', 'this cell has no slots');
    return this.#link.begin(order, account);
  }

  /** The processes of the cell as the host numbers them, by the numbers that they have inside. */
  hostPids(): Promise<ReadonlyMap<number, number>> {
    return this.#parts.cgroup?.hostPids() ?? Promise.resolve(new Map());
  }

  /** Precondition: the agent has opened its ends, or there is none any more. */
  seal(): Promise<void> {
    return this.#parts.channel.seal();
  }

  async #live(): Promise<void> {
    const { channel, runtime } = this.#parts;
    const runtimeEnded = runtime.ended.then(() => {
      this.#runtimeEnded = true;
      channel.hangUp();
    });
    await channel.ended;
    if (this.#leftAlone) return;
    this.#announceEnd();
    await runtimeEnded;
    await this.#parts.cleanUp();
  }

  /** The streams end a little before the runtime has tidied up: the answer need not wait for that. */
  #announceEnd(): void {
    const { channel, runtime } = this.#parts;
    this.#mainEnded = true;
    const usage = this.#readUsage();
    channel.letGo();
    const outcome = toOutcome(channel.programEnd, this.#killCause, usage);
    if (outcome === undefined) {
      const words = runtime.words().trim();
      channel.queue.fail(
        words === ''
          ? new HotcellError('CELL_LOST', `cell ${this.name} was ended from outside`)
          : new HotcellError('CELL_START_FAILED', `cell ${this.name} did not start: ${words}`),
      );
      return;
    }
    channel.queue.push({ type: 'exit', outcome, usage });
    channel.queue.end();
  }

  #readUsage(): Usage {
    return this.#parts.cgroup?.usage() ?? NO_USAGE;
  }

  async exec(request: ExecRequest): Promise<Exec> {
    if (this.#link === undefined) throw new HotcellError('INTERNAL', 'this cell was made for one program');
    return this.#link.start(fillRequest(request, withFolders(PATHS_IN_CELL, this.#parts.spec.folders), {}), {
      alone: false,
    });
  }

  async #freeze(): Promise<void> {
    const { cli, id, channel } = this.#parts;
    const { code, stderr } = await cli.pause(id);
    if (code === 0) {
      this.#frozen = true;
      return;
    }
    // Of one that has just ended the streams may not have ended yet.
    await Promise.race([channel.ended, sleep(STREAMS_END_MS)]);
    const isLost = this.#mainEnded || !cli.knows(id);
    throw isLost
      ? new HotcellError('CELL_LOST', `cell ${this.name} was ended from outside`)
      : new HotcellError('INTERNAL', `cell ${this.name} cannot be frozen: ${stderr.trim()}`);
  }

  async #thaw(): Promise<void> {
    await this.#parts.cli.resume(this.#parts.id);
    this.#frozen = false;
  }

  usage(): Promise<CellUsage> {
    const { cgroup } = this.#parts;
    return Promise.resolve(cgroup?.current() ?? { cpuMs: 0, memoryBytes: undefined, processes: undefined });
  }

  /** The server goes, the cell stays. */
  leaveAlone(): void {
    this.#leftAlone = true;
    this.#link?.close(new HotcellError('SHUTTING_DOWN', 'the server is stopping'));
    this.#parts.channel.detach();
    this.#parts.runtime.leave();
    this.#parts.cgroup?.close();
  }

  /** Ends a cell that has become unusable; whoever waits for its program learns that the cell was lost. */
  async abandon(): Promise<void> {
    await this.#kill(undefined);
    await this.gone;
  }

  async #kill(cause: KillCause | undefined): Promise<void> {
    this.#killCause ??= cause;
    const { cgroup, cli, id } = this.#parts;
    for (let attempt = 0; !this.#runtimeEnded && attempt < 100; attempt++) {
      const killed = cgroup === undefined ? (await cli.kill(id)).code === 0 : await cgroup.kill();
      if (killed) return;
      // Not there yet, or just gone.
      await sleep(Math.min(100, 5 + attempt * 5));
    }
    if (!this.#runtimeEnded) await cli.delete(id);
  }

  async dispose(): Promise<void> {
    // Whoever is frozen does not die.
    if (this.#frozen) await this.#thaw();
    // A cell whose program has ended is on its way out: killing it would only cost one more process.
    if (this.#mainEnded) await Promise.race([this.gone, sleep(GRACE_MS, undefined, { ref: false })]);
    if (!this.#runtimeEnded) {
      this.main?.closeStdin();
      await this.#kill('cancelled');
      await this.#untilGone();
    }
    await this.gone;
  }

  /** Somebody else may have frozen it, too: then it dies only when it is thawed. */
  async #untilGone(): Promise<void> {
    const isGone = await Promise.race([this.gone.then(() => true), sleep(GRACE_MS, false, { ref: false })]);
    if (!isGone && !this.#runtimeEnded) await this.#thaw();
  }
}
