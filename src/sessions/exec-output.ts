import { join } from 'node:path';
import { HotcellError } from '../core/errors.ts';
import { HeadTail } from '../lib/head-tail.ts';
import type { ExecReport, OutputPart } from './api.ts';
import type { ExecResult } from './stored-exec.ts';
import type { ExecSurroundings } from './exec-surroundings.ts';
import { OutputLog } from './output-log.ts';
import type { OutputPiece, OutputStream } from './output-records.ts';
import { readPart } from './output-part.ts';

/** Output up to here is at hand when the command ends, so that most replies read no file. */
const AT_HAND_BYTES = 16 * 1024;

/** The output of one command: the log, and what makes replies of it. */
export class ExecOutput {
  readonly #around: ExecSurroundings;
  readonly #folder: string;
  /** Of a command that ended in an earlier life of the server it is opened when somebody asks. */
  #log: OutputLog | undefined;
  #opening: Promise<OutputLog> | undefined;
  #totals: { readonly bytes: number; readonly stderrBytes: number } | undefined;
  #atHand: OutputPiece[] | undefined = [];
  /** Somebody waits for the texts. */
  #isAwaited = false;
  readonly #released = Promise.withResolvers<never>();

  private constructor(folder: string, around: ExecSurroundings, log: OutputLog | undefined) {
    this.#folder = folder;
    this.#around = around;
    this.#log = log;
    this.#released.promise.catch(() => {});
  }

  static create(execId: string, around: ExecSurroundings): ExecOutput {
    const folder = join(around.outputFolder, execId);
    return new ExecOutput(folder, around, OutputLog.create(folder, around.settings.output));
  }

  /** Of a command that goes on after a restart of the server. */
  static async reopen(execId: string, around: ExecSurroundings): Promise<ExecOutput> {
    const folder = join(around.outputFolder, execId);
    const output = new ExecOutput(folder, around, await OutputLog.reopen(folder, around.settings.output));
    output.#atHand = undefined;
    return output;
  }

  /** Of a command that has ended. */
  static recall(execId: string, around: ExecSurroundings, result: ExecResult): ExecOutput {
    const output = new ExecOutput(join(around.outputFolder, execId), around, undefined);
    const { stdoutBytes, stderrBytes } = result;
    output.#totals = { bytes: stdoutBytes + stderrBytes, stderrBytes };
    output.#atHand = undefined;
    return output;
  }

  get bytes(): number {
    return this.#log?.bytes ?? this.#totals?.bytes ?? 0;
  }

  get stderrBytes(): number {
    return this.#log?.stderrBytes ?? this.#totals?.stderrBytes ?? 0;
  }

  /** Of a log that was not opened since the restart this is what it can have at most. */
  get diskBytes(): number {
    if (this.#log !== undefined) return this.#log.diskBytes;
    const { headBytes, tailBytes } = this.#around.settings.output;
    return Math.min(this.bytes, headBytes + tailBytes);
  }

  async append(stream: OutputStream, bytes: Uint8Array): Promise<void> {
    const log = await this.#open();
    const from = log.bytes;
    await log.append(stream, bytes);
    this.#around.counters.outputBytes += bytes.length;
    if (this.#atHand === undefined) return;
    // A copy: the source's buffer may be a large slab.
    if (log.bytes <= AT_HAND_BYTES) this.#atHand.push({ type: stream, from, bytes: bytes.slice() });
    else this.#atHand = undefined;
  }

  #open(): Promise<OutputLog> | OutputLog {
    if (this.#log !== undefined) return this.#log;
    this.#opening ??= OutputLog.reopen(this.#folder, this.#around.settings.output).then((log) => {
      log.finish();
      this.#log = log;
      return log;
    });
    return this.#opening;
  }

  async *follow(from: number, signal: AbortSignal): AsyncGenerator<OutputPiece> {
    const log = await this.#open();
    yield* log.follow(from, signal);
  }

  async read(from: number, limitBytes: number, result: ExecResult | undefined): Promise<OutputPart> {
    return readPart(await this.#open(), from, limitBytes, result);
  }

  /** What a reply shows of both streams once `ended` has come. */
  async texts(ended: Promise<unknown>): Promise<Omit<ExecReport, keyof ExecResult>> {
    this.#isAwaited = true;
    await Promise.race([ended, this.#released.promise]);
    const log = await this.#open();
    const limit = Math.floor(this.#around.settings.output.replyBytes / 2);
    const streams = { stdout: new HeadTail(limit), stderr: new HeadTail(limit) };
    const take = (piece: OutputPiece): void => {
      if (piece.type !== 'cut') return streams[piece.type].push(piece.bytes);
      streams.stdout.gap();
      streams.stderr.gap();
    };
    if (this.#atHand !== undefined) this.#atHand.forEach(take);
    else for await (const piece of log.read(0, Infinity)) take(piece);
    this.#atHand = undefined;
    const stdout = streams.stdout.text(log.bytes - log.stderrBytes);
    const stderr = streams.stderr.text(log.stderrBytes);
    return { stdout: stdout.text, stderr: stderr.text, cutBytes: stdout.cutBytes + stderr.cutBytes };
  }

  finish(): void {
    this.#log?.finish();
    if (!this.#isAwaited) this.#atHand = undefined;
  }

  letGo(): void {
    this.#log?.close();
    this.#released.reject(new HotcellError('SHUTTING_DOWN', 'the server is stopping; the command goes on'));
  }

  async remove(): Promise<void> {
    const log = await this.#open();
    await log.remove();
  }
}
