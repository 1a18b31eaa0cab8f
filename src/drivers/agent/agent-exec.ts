import { HotcellError } from '../../core/errors.ts';
import type {
  Deadline,
  Exec,
  ExecEvent,
  KillCause,
  LastingExec,
  ReachableLimit,
  TerminalSize,
  Usage,
} from '../../core/exec.ts';
import { EventQueue } from '../../lib/event-queue.ts';
import { toKilledOutcome, toOutcome, toOwnCause, toReached, toUsage, type Figures } from './report.ts';

/** How much more output the agent is granted at a time. */
const GRANT_BYTES = 64 * 1024;
const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };

/** Who counts what a command uses, and lets it die, where its agent does neither. */
export interface Account {
  usage(): Usage;
  /** Before a kill: whoever is throttled would be long in dying. */
  release(): void;
}

export interface AgentExecParts {
  /** The number of the command. */
  readonly id: number;
  /** The only command that this cell will ever run. */
  readonly alone: boolean;
  /** It has a terminal, or perhaps: of one that a server before us started nobody knows. */
  readonly terminal: boolean;
  /** Its cell outlives us. */
  readonly lasting: boolean;
  /** The byte of its output that comes first: not 0 for one that a server before us started. */
  readonly fromByte: number;
  /** After this a kill that was asked for has failed. */
  readonly killMs: number;
  /** False when nothing can be sent at present. */
  send(type: string, payload?: Uint8Array): boolean;
  /** Asks the agent for the figures so far; undefined when it does not answer. */
  ask(): Promise<Figures | undefined>;
  readonly account?: Account;
  /** Limits that the kernel reported as reached since the command began, where the agent cannot see it. */
  reached(): readonly ReachableLimit[];
  /** The command does not die: ends the cell. Rejects when that fails, too. */
  giveUp(): Promise<void>;
}

/** As the agent reads it, for a command or for its cell. */
export function encodeDeadline({ afterMs, graceMs }: Deadline): Uint8Array {
  return Buffer.from(`${Math.round(afterMs)} ${Math.round(graceMs)}`);
}

/** One command, seen from our side of the connection. */
export class AgentExec implements Exec {
  readonly events: AsyncIterable<ExecEvent> = { [Symbol.asyncIterator]: () => this.#iterator() };
  readonly ended: Promise<void>;
  readonly resize?: (size: TerminalSize) => void;
  readonly lasting?: LastingExec;
  readonly #parts: AgentExecParts;
  readonly #queue = new EventQueue<ExecEvent>();
  #markEnded: () => void = () => {};
  #isEnded = false;
  /** Up to which byte output has come, and up to which the agent was paid for it. */
  #received: number;
  #paid: number;
  /** Bytes that come a second time. */
  #known = 0;
  #unpaid = 0;
  #taken = 0;
  #cwd: string | undefined;
  #cause: KillCause | undefined;
  #figures: Figures | undefined;
  #lastResort: NodeJS.Timeout | undefined;

  constructor(parts: AgentExecParts) {
    this.#parts = parts;
    if (parts.terminal) this.resize = (size) => this.#resize(size);
    if (parts.lasting) this.lasting = { number: parts.id, forget: () => void parts.send('D') };
    this.#received = parts.fromByte;
    this.#paid = parts.fromByte;
    this.ended = new Promise((resolve) => (this.#markEnded = resolve));
  }

  #resize({ rows, columns }: TerminalSize): void {
    if (!this.#isEnded) this.#parts.send('W', Buffer.from(`${rows} ${columns}`));
  }

  /** What the agent said at the end, once it has. */
  get figures(): Figures | undefined {
    return this.#figures;
  }

  async usage(): Promise<Usage> {
    const { account } = this.#parts;
    if (account !== undefined) return account.usage();
    const figures = this.#figures ?? (await this.#parts.ask());
    return figures === undefined ? NO_USAGE : toUsage(figures, this.#parts.alone, []);
  }

  write(bytes: Uint8Array): void {
    if (!this.#isEnded) this.#parts.send('I', bytes);
  }

  closeStdin(): void {
    if (!this.#isEnded) this.#parts.send('E');
  }

  terminate(): void {
    if (!this.#isEnded) this.#parts.send('T');
  }

  endAfter(deadline: Deadline | undefined): void {
    if (!this.#isEnded) this.#parts.send('A', deadline && encodeDeadline(deadline));
  }

  kill(cause: KillCause): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    this.#cause ??= cause;
    this.#parts.account?.release();
    this.#parts.send('K');
    this.#lastResort ??= setTimeout(() => void this.#giveUp(), this.#parts.killMs);
    return Promise.resolve();
  }

  async #giveUp(): Promise<void> {
    try {
      await this.#parts.giveUp();
      this.lost(new HotcellError('CELL_LOST', 'the cell was ended with the command'));
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  output(type: 'stdout' | 'stderr', bytes: Uint8Array): void {
    const fresh = bytes.subarray(Math.min(this.#known, bytes.length));
    this.#known -= bytes.length - fresh.length;
    this.#received += fresh.length;
    const isKnown = fresh.length === 0 && bytes.length > 0;
    if (!isKnown) this.#queue.push({ type, bytes: fresh });
  }

  /** The connection was lost and is there again: asks for what was not paid for, and repeats what must not get lost. */
  askAgain(): void {
    this.#known = this.#received - this.#paid;
    this.#parts.send('Z', Buffer.from(String(this.#paid)));
    if (this.#cause !== undefined) this.#parts.send('K');
  }

  /** Where the command's shell says that it ended. */
  place(path: string): void {
    this.#cwd = path;
  }

  exited(figures: Figures): void {
    this.#figures = figures;
    const counted = this.#parts.account?.usage();
    const reached = counted?.reached ?? [...toReached(figures), ...this.#parts.reached()];
    const usage = counted ?? toUsage(figures, this.#parts.alone, reached);
    this.#queue.push({
      type: 'exit',
      outcome: toOutcome(figures, this.#cause ?? toOwnCause(figures), reached),
      usage,
      ...(this.#cwd === undefined ? {} : { cwd: this.#cwd }),
      ...(figures.get('moved') === 1 ? { fellBack: true } : {}),
    });
    this.#end();
  }

  failed(words: string): void {
    this.#end(new HotcellError('CELL_START_FAILED', `the command did not start: ${words}`));
  }

  /** The whole cell has run out of memory: a kernel of its own ends with everything in it. */
  ranOutOfMemory(): void {
    if (this.#isEnded) return;
    const limit = 'memoryBytes';
    const outcome =
      this.#cause === undefined ? ({ kind: 'limit', limit } as const) : toKilledOutcome(this.#cause);
    const usage = this.#parts.account?.usage() ?? { ...NO_USAGE, reached: [limit] };
    this.#queue.push({ type: 'exit', outcome, usage });
    this.#end();
  }

  /** The command is gone with its cell or its supervisor, or, for any other error, nobody knows what became of it. */
  lost(error: HotcellError): void {
    if (this.#isEnded) return;
    if (this.#parts.account?.usage().reached.includes('memoryBytes') === true) {
      this.ranOutOfMemory();
      return;
    }
    // Whoever was to be killed is dead with the cell; of one that cannot be reached that would be a guess.
    if (this.#cause === undefined || error.code !== 'CELL_LOST') {
      this.#end(error);
      return;
    }
    this.#queue.push({ type: 'exit', outcome: toKilledOutcome(this.#cause), usage: NO_USAGE });
    this.#end();
  }

  #end(error?: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#lastResort);
    if (error === undefined) this.#queue.end();
    else this.#queue.fail(error);
    this.#markEnded();
  }

  /**
   * Grants the agent more output for what was read, so that a slow reader costs waiting, not memory. Not before the
   * reader comes back for more: the agent of a cell that lasts forgets what it is paid for.
   */
  #iterator(): AsyncIterator<ExecEvent> {
    const inner = this.#queue[Symbol.asyncIterator]();
    return {
      next: async () => {
        this.#pay();
        const result = await inner.next();
        if (result.done !== true && result.value.type !== 'exit') this.#taken = result.value.bytes.length;
        return result;
      },
    };
  }

  #pay(): void {
    this.#unpaid += this.#taken;
    this.#taken = 0;
    if (this.#unpaid < GRANT_BYTES) return;
    const grant = Buffer.alloc(4);
    grant.writeUInt32BE(this.#unpaid);
    if (!this.#parts.send('C', grant)) return;
    this.#paid += this.#unpaid;
    this.#unpaid = 0;
  }
}
