import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import type { Exec, ExecEvent } from '../../src/core/exec.ts';
import { LOUD_PERL } from '../../test/support/loud-perl.ts';

const SCRIPT = join(dirname(import.meta.dirname), 'egress.pl');
const NO_USAGE = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };

/** The real guest program as a child of the test, seen as a command of a cell. */
export class RelayProgram implements Exec {
  readonly id = 1;
  readonly events: AsyncIterable<ExecEvent>;
  readonly ended: Promise<void>;
  readonly child: ChildProcessWithoutNullStreams;
  /** What it has complained about. */
  words = '';

  constructor(port: number) {
    this.child = spawn('perl', [...LOUD_PERL, SCRIPT, String(port)], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stdin.on('error', () => {});
    this.child.stderr.on('data', (bytes: Buffer) => (this.words += bytes.toString()));
    const closed = once(this.child, 'close');
    this.ended = closed.then(() => {});
    this.events = this.#read(closed);
  }

  async *#read(closed: Promise<unknown[]>): AsyncGenerator<ExecEvent> {
    const chunks: AsyncIterable<Buffer> = this.child.stdout;
    for await (const bytes of chunks) yield { type: 'stdout', bytes };
    const [code] = await closed;
    yield { type: 'exit', outcome: { kind: 'exited', code: Number(code ?? 137) }, usage: NO_USAGE };
  }

  write(bytes: Uint8Array): void {
    this.child.stdin.write(bytes);
  }

  /** What was written and has not been taken yet. */
  get unwritten(): number {
    return this.child.stdin.writableLength;
  }

  closeStdin(): void {
    this.child.stdin.end();
  }

  kill(): Promise<void> {
    this.child.kill('SIGKILL');
    return Promise.resolve();
  }

  terminate(): void {
    this.child.kill('SIGTERM');
  }

  resize(): void {}

  forget(): void {}

  usage(): Promise<typeof NO_USAGE> {
    return Promise.resolve(NO_USAGE);
  }
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address === null || typeof address === 'string' ? 0 : address.port;
}
