import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Writable } from 'node:stream';
import { HotcellError } from '../../core/errors.ts';
import { AgentCell, type AgentCellParts } from '../engine/agent-cell.ts';
import { isNameTaken, isServicesDown, toServicesDown, toStartError } from './cli-words.ts';

const WORDS_KEPT = 4096;
/** The services write whatever the first process prints into a log on the disk of the host, and nobody bounds that. */
const LOGGED_BYTES = 1024 ** 3;

export interface AppleCellParts extends Omit<AgentCellParts, 'name' | 'lasting'> {
  readonly image: string;
  /** The call that is the cell: its streams are those of the agent. */
  readonly call: ChildProcessWithoutNullStreams;
}

/**
 * A container that one call of the CLI carries. It does not last: its input ends with the call that started it, and
 * nothing can be attached to it again.
 */
export class AppleCell extends AgentCell<Writable> {
  readonly #parts: AppleCellParts;
  #words = '';
  #heard = 0;
  #isReady = false;

  constructor(parts: AppleCellParts) {
    super({ ...parts, name: parts.spec.name }, parts.call.stdin);
    this.#parts = parts;
    const { call } = parts;
    call.stdout.on('data', (bytes: Buffer) => this.#hear(bytes));
    call.stderr.on(
      'data',
      (bytes: Buffer) => (this.#words = (this.#words + bytes.toString()).slice(-WORDS_KEPT)),
    );
    call.on('error', (error) => this.#hungUp(error.message));
    call.on('close', () => this.#hungUp(this.#words.trim()));
  }

  override async ready(): Promise<void> {
    await super.ready();
    this.#isReady = true;
  }

  #hear(bytes: Buffer): void {
    this.#heard += bytes.length;
    this.link.receive(bytes);
    if (this.#heard < LOGGED_BYTES) return;
    this.link.close(new HotcellError('CELL_LOST', `cell ${this.name} has printed all that its log may hold`));
    this.remove().catch(() => {});
  }

  /** The call has ended: with the container, or because somebody killed it, and then the container is still there. */
  #hungUp(words: string): void {
    this.link.close(this.#toEnd(words));
    // SECURITY: a container that had the name before is somebody else's.
    if (!this.#isReady && isNameTaken(words)) this.disown();
    this.remove().catch(() => {});
  }

  #toEnd(words: string): HotcellError {
    if (isServicesDown(words)) return toServicesDown(words);
    return this.#isReady || words === ''
      ? new HotcellError('CELL_LOST', `cell ${this.name} was ended from outside`)
      : toStartError(this.name, this.#parts.image, words);
  }

  protected override letGo(): void {
    const { call } = this.#parts;
    // Only now: killed before, it would leave the container running.
    if (call.exitCode === null && call.signalCode === null) call.kill('SIGKILL');
    for (const stream of [call.stdin, call.stdout, call.stderr]) stream.destroy();
  }
}
