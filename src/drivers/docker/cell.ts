import type { Duplex } from 'node:stream';
import type { Cell, Freezer, LastingCell } from '../../core/cell.ts';
import { HotcellError, toHotcellError } from '../../core/errors.ts';
import type { LastingLink } from '../agent/agent-link.ts';
import { AgentCell, type AgentCellParts } from '../engine/agent-cell.ts';
import { listen } from './attached-stream.ts';
import type { Wire } from './wire.ts';

const WORDS_KEPT = 2048;
const AGAIN_MS = 1000;

export interface DockerCellParts extends AgentCellParts {
  /** The streams of the container. */
  readonly stream: Duplex;
  /** What the agent says, where its stdout is what the engine keeps. */
  readonly wire?: Wire | undefined;
  readonly limitMemory: Cell['limitMemory'] | undefined;
  /** Asks, of a container that has ended, whether memory ran out; undefined where the agent would have told. */
  readonly wasOutOfMemory: (() => Promise<boolean>) | undefined;
  readonly lasting?: LastingLink & {
    readonly record: string;
    /** A new connection to the container, which goes on if it was frozen. Throws CELL_LOST when it has ended. */
    attachAgain(): Promise<Duplex>;
  };
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** The volume with the guest files is empty. */
  onGuestMissing(): void;
}

/** A container of an engine, which may be frozen, outlive us, and be attached to again. */
export class DockerCell extends AgentCell<Duplex> {
  readonly lasting?: LastingCell;
  readonly limitMemory?: (bytes: number) => Promise<void>;
  readonly writeLog?: (line: string) => void;
  readonly freezer: Freezer = { freeze: () => this.#freeze(), thaw: () => this.#thaw() };
  readonly #parts: DockerCellParts;
  /** How often somebody has asked for a new connection since the last attempt began. */
  #asked = 0;
  #words = '';
  #frozen = false;
  #leftAlone = false;

  /** Precondition: the container runs. */
  constructor(parts: DockerCellParts) {
    super({ ...parts, id: parts.id.slice(0, 12) }, parts.stream);
    this.#parts = parts;
    const { lasting, limitMemory, wire } = parts;
    if (limitMemory !== undefined) this.limitMemory = limitMemory;
    if (lasting !== undefined)
      this.lasting = {
        record: lasting.record,
        resume: (number, fromByte) => this.link.resume(number, fromByte),
        endAfter: (deadline) => this.link.endAfter(deadline),
      };
    if (wire !== undefined) {
      wire.onData((bytes) => this.link.receive(bytes));
      this.writeLog = (line) => this.link.writeLog(line);
    }
    void this.#listen();
  }

  async #listen(): Promise<void> {
    const { wire } = this.#parts;
    await listen(this.stream, (source, bytes) => {
      if (source === 'stderr') this.#words = (this.#words + bytes.toString()).slice(-WORDS_KEPT);
      else if (wire === undefined) this.link.receive(bytes);
    });
    await wire?.end();
    if (this.#parts.lasting === undefined) this.#hungUp((await this.#parts.wasOutOfMemory?.()) === true);
    else await this.reconnect();
  }

  /** The connection broke, the container may be there: only one that has ended is lost. Tried again until that is known. */
  async reconnect(): Promise<void> {
    const { lasting } = this.#parts;
    if (lasting === undefined || this.#leftAlone) return;
    // Its commands are to hear that it is gone.
    if (this.removal !== undefined) return this.#hungUp(false);
    // An attempt before this one may have succeeded, or be under way and still wait for an engine that was away.
    if (!this.stream.destroyed) return;
    this.#asked++;
    if (this.#asked > 1) return;
    this.link.suspend(new HotcellError('DRIVER_UNAVAILABLE', `cell ${this.name} cannot be reached`));
    try {
      this.stream = await lasting.attachAgain();
      // Meanwhile nobody may want it any more.
      if (this.#leftAlone || this.removal !== undefined) this.stream.destroy();
      void this.#listen();
      await this.link.relink();
      if (this.#frozen) await this.#parts.freeze();
    } catch (error) {
      if (toHotcellError(error).code === 'CELL_LOST') return this.#hungUp(false);
      const isRepeated = this.#asked > 1;
      this.#asked = 0;
      if (isRepeated) await this.reconnect();
      // The engine may be back before anybody has noticed that it was away: nobody would ask again.
      else setTimeout(() => void this.reconnect(), AGAIN_MS).unref();
      return;
    }
    this.#asked = 0;
  }

  async #freeze(): Promise<void> {
    await this.#parts.freeze();
    this.#frozen = true;
  }

  async #thaw(): Promise<void> {
    await this.#parts.thaw();
    this.#frozen = false;
  }

  /** The server goes, the cell stays. */
  leaveAlone(): void {
    this.#leftAlone = true;
    this.link.close(new HotcellError('SHUTTING_DOWN', 'the server is stopping'));
    this.stream.destroy();
  }

  /** The container has ended, or the engine has. */
  #hungUp(outOfMemory: boolean): void {
    if (this.#leftAlone) return;
    const words = this.#words.trim();
    if (words.includes('agent.pl')) this.#parts.onGuestMissing();
    this.link.close(
      words === ''
        ? new HotcellError('CELL_LOST', `cell ${this.name} was ended from outside`)
        : new HotcellError('CELL_START_FAILED', `cell ${this.name} did not start: ${words}`),
      { outOfMemory },
    );
    this.remove().catch(() => {});
  }

  /** The engine does not answer. Whoever waits for this cell learns why; one that lasts waits for the engine. */
  abandon(error: HotcellError): void {
    if (this.#parts.lasting === undefined) this.link.close(error);
    else this.link.suspend(error);
    this.stream.destroy();
  }

  override async dispose(): Promise<void> {
    // Whoever is frozen does not die, as far as some engines are concerned.
    if (this.#frozen) await this.#thaw().catch(() => {});
    await super.dispose();
  }
}
