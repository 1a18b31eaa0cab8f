import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { HotcellError } from '../core/errors.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { LONGEST_CODE, failed, type ScanOptions } from './scan-imports.ts';
import { ImportScan, type ScanQuestion } from './scan-messages.ts';

const PROCESS = fileURLToPath(new URL('./scan-process.ts', import.meta.url));
const LONGEST_SCAN_MS = 10_000;

export interface ImportScannerOptions {
  /** After that the code counts as unreadable. */
  readonly timeoutMs?: number;
}

/**
 * Reads imports of code that nobody has to trust, in a process of its own: native parsers die of code that is nested too
 * deeply, and then only that process does. It is started when it is needed, and ends with us.
 */
export class ImportScanner {
  readonly #timeoutMs: number;
  /** One after the other, so that it is known whose code it died of. */
  readonly #turns = new Semaphore(1);
  #child: ChildProcess | undefined;
  #isClosed = false;

  constructor({ timeoutMs = LONGEST_SCAN_MS }: ImportScannerOptions = {}) {
    this.#timeoutMs = timeoutMs;
  }

  async scan(code: string, { fileName }: ScanOptions): Promise<ImportScan> {
    if (code.length > LONGEST_CODE) {
      return failed('syntax', `the code has more than ${LONGEST_CODE} characters`);
    }
    return this.#turns.run(async () => this.#ask({ code, fileName }));
  }

  /** Starts the process before it is needed. */
  warmUp(): void {
    if (!this.#isClosed) this.#child ??= this.#start();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    // Otherwise nothing may keep us until then.
    child.ref();
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async #ask(question: ScanQuestion): Promise<ImportScan> {
    if (this.#isClosed) throw new HotcellError('SHUTTING_DOWN', 'the server is stopping');
    const child = (this.#child ??= this.#start());
    const reply = await this.#wait(child, question);
    if (reply !== undefined) return reply;
    this.#child = undefined;
    child.kill('SIGKILL');
    return failed('syntax', 'the code is too large or too deeply nested to be read');
  }

  #start(): ChildProcess {
    const child = fork(PROCESS, {
      // SECURITY: what it reads is hostile, so it knows nothing of us.
      env: {},
      execArgv: ['--max-old-space-size=1024'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
    });
    // It waits for questions, but nobody has to wait for it.
    child.unref();
    child.channel?.unref();
    child.on('exit', () => {
      if (this.#child === child) this.#child = undefined;
    });
    child.on('error', () => {});
    return child;
  }

  /** Undefined when there is no answer. */
  async #wait(child: ChildProcess, question: ScanQuestion): Promise<ImportScan | undefined> {
    const { promise, resolve } = Promise.withResolvers<ImportScan | undefined>();
    const onMessage = (message: unknown): void => resolve(ImportScan.safeParse(message).data);
    const onEnd = (): void => resolve(undefined);
    const timer = setTimeout(onEnd, this.#timeoutMs);
    child.once('message', onMessage);
    child.once('exit', onEnd);
    child.once('error', onEnd);
    child.send(question, (error) => {
      if (error !== null) onEnd();
    });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      child.off('message', onMessage);
      child.off('exit', onEnd);
      child.off('error', onEnd);
    }
  }
}
