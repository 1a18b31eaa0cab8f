import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FrameReader, encodeFrame, type Frame } from '../../../src/lib/frames.ts';
import { writeBundle } from './bundle.ts';
import { now } from './plan-container.ts';
import { FRAME, LARGEST_FRAME, type ShimRequest } from './shim-protocol.ts';
import { DoubleState } from './state.ts';

/** Of streams that somebody in the container still holds when its process has ended. */
const DRAIN_MS = 3000;
const SIGNALLED = 128;
const LOOK_MS = 200;

/** Stays with one container from its start to its end, whatever becomes of the calls that asked for it. */
class Shim {
  readonly #state: DoubleState;
  readonly #id: string;
  readonly #bundle: string;
  readonly #server = createServer((socket) => this.#serve(socket));
  #init: ChildProcessWithoutNullStreams | undefined;
  readonly #ended = Promise.withResolvers<number>();

  constructor(folder: string, id: string) {
    this.#state = new DoubleState(folder);
    this.#id = id;
    this.#bundle = join(this.#state.folderOf(id), 'bundle');
  }

  listen(): void {
    // Under its name only when it listens.
    const path = this.#state.socketOf(this.#id);
    this.#server.listen(`${path}.new`, () => renameSync(`${path}.new`, path));
    // The call that made us may be killed before it says what for.
    setInterval(() => {
      if (this.#init === undefined && this.#state.findContainer(this.#id) === undefined) process.exit(0);
    }, LOOK_MS).unref();
  }

  #serve(socket: Socket): void {
    const reader = new FrameReader(LARGEST_FRAME);
    let onFrame = (_frame: Frame): void => {};
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      for (const frame of reader.push(bytes)) {
        if (frame.type !== FRAME.request) onFrame(frame);
        else onFrame = this.#handle(socket, JSON.parse(Buffer.from(frame.payload).toString()) as ShimRequest);
      }
    });
  }

  /** Returns what takes the input that follows. */
  #handle(socket: Socket, request: ShimRequest): (frame: Frame) => void {
    if (request.type === 'start') return this.#start(socket, request);
    if (request.type === 'exec') return this.#exec(socket, request);
    void this.#signal(socket, request);
    return () => {};
  }

  #start(socket: Socket, { attach, interactive }: ShimRequest & { type: 'start' }): (frame: Frame) => void {
    const record = this.#state.findContainer(this.#id);
    if (record === undefined) throw new Error('there is no such container');
    mkdirSync(this.#bundle, { mode: 0o711 });
    writeBundle(this.#bundle, record.configuration, this.#state.control.tools);
    const pidFile = join(this.#bundle, 'pid');
    const child = this.#runtime('run', '--bundle', this.#bundle, '--pid-file', pidFile, this.#id);
    this.#init = child;
    if (!interactive) child.stdin.end();
    const log = createWriteStream(join(this.#state.folderOf(this.#id), 'stdio.log'));
    log.on('error', () => {});
    // Of a start that fails the runtime tells on stderr.
    const words = { early: '' };
    let isKnown = false;
    child.stderr.on('data', (bytes: Buffer) => {
      log.write(bytes);
      if (!isKnown) words.early += bytes.toString();
      else if (attach) forward(socket, FRAME.stderr, bytes, child.stderr);
    });
    const started = this.#untilStarted(child, pidFile).then((isStarted) => {
      isKnown = true;
      if (!isStarted) return false;
      this.#state.setState(this.#id, 'running', now());
      send(socket, FRAME.started);
      if (attach && words.early !== '') send(socket, FRAME.stderr, words.early);
      return true;
    });
    // What it prints is not told before it is known to run: a caller could ask for it at once.
    void started.then(() =>
      child.stdout.on('data', (bytes: Buffer) => {
        log.write(bytes);
        if (attach) forward(socket, FRAME.stdout, bytes, child.stdout);
      }),
    );
    child.on(
      'close',
      (code, signal) => void started.then((was) => this.#finish(socket, { was, code, signal, words })),
    );
    return (frame) => takeInput(child, frame);
  }

  async #untilStarted(child: ChildProcessWithoutNullStreams, pidFile: string): Promise<boolean> {
    while (!existsSync(pidFile)) {
      if (child.exitCode !== null || child.signalCode !== null) return existsSync(pidFile);
      await sleep(2);
    }
    return true;
  }

  #finish(
    socket: Socket,
    end: { was: boolean; code: number | null; signal: NodeJS.Signals | null; words: { early: string } },
  ): void {
    spawnSync('runc', ['--root', this.#state.runtime, 'delete', '--force', this.#id]);
    rmSync(this.#bundle, { recursive: true, force: true });
    this.#state.setState(this.#id, 'stopped');
    const code = end.code ?? SIGNALLED + 9;
    if (end.was) send(socket, FRAME.exited, String(code));
    else send(socket, FRAME.failed, end.words.early);
    rmSync(this.#state.socketOf(this.#id), { force: true });
    this.#ended.resolve(code);
    // A start that failed is removed by whoever asked for it.
    if (end.was && this.#state.findContainer(this.#id)?.autoRemove === true)
      this.#state.removeContainer(this.#id);
    socket.end();
    this.#server.close();
    // Whoever waits for the end has been told.
    setTimeout(() => process.exit(0), 50);
  }

  #exec(socket: Socket, request: ShimRequest & { type: 'exec' }): (frame: Frame) => void {
    const child = this.#runtime(
      'exec',
      ...request.env.flatMap((entry) => ['--env', entry]),
      ...(request.cwd === undefined ? [] : ['--cwd', request.cwd]),
      ...(request.user === undefined ? [] : ['--user', request.user]),
      this.#id,
      ...request.words,
    );
    if (!request.interactive) child.stdin.end();
    const words: string[] = [];
    child.stdout.on('data', (bytes: Buffer) => forward(socket, FRAME.stdout, bytes, child.stdout));
    child.stderr.on('data', (bytes: Buffer) => {
      words.push(bytes.toString());
      if (!isRuntimeFailure(words)) forward(socket, FRAME.stderr, bytes, child.stderr);
    });
    child.on('exit', (code) => {
      const end = (): void => {
        if (isRuntimeFailure(words)) send(socket, FRAME.failed, words.join(''));
        else send(socket, FRAME.exited, String(code ?? SIGNALLED + 9));
        socket.end();
      };
      const timer = setTimeout(end, DRAIN_MS);
      child.on('close', () => {
        clearTimeout(timer);
        end();
      });
    });
    return (frame) => takeInput(child, frame);
  }

  async #signal(
    socket: Socket,
    { signal, thenKillAfterMs }: ShimRequest & { type: 'signal' },
  ): Promise<void> {
    const kill = (name: string) => spawnSync('runc', ['--root', this.#state.runtime, 'kill', this.#id, name]);
    if (this.#init === undefined) {
      socket.end();
      return;
    }
    kill(signal);
    if (thenKillAfterMs !== undefined) {
      const timer = setTimeout(() => kill('KILL'), thenKillAfterMs);
      void this.#ended.promise.then(() => clearTimeout(timer));
    }
    if (thenKillAfterMs !== undefined || signal === 'KILL') await this.#ended.promise;
    send(socket, FRAME.exited, '0');
    socket.end();
  }

  #runtime(...words: string[]): ChildProcessWithoutNullStreams {
    const child = spawn('runc', ['--root', this.#state.runtime, ...words], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin.on('error', () => {});
    return child;
  }
}

function isRuntimeFailure(words: readonly string[]): boolean {
  return words.some((text) => text.includes('exec failed: '));
}

/** A reader that is slow slows down whoever writes; one that is gone does not. */
function forward(socket: Socket, type: string, bytes: Buffer, from: NodeJS.ReadableStream): void {
  if (socket.destroyed || !socket.writable) return;
  if (socket.write(encodeFrame(type, 0, bytes))) return;
  from.pause();
  const goOn = (): void => void from.resume();
  socket.once('drain', goOn);
  socket.once('close', goOn);
}

/** The end of a connection is not the end of the input: the services keep their side of it. */
function takeInput(child: ChildProcessWithoutNullStreams, { type, payload }: Frame): void {
  if (type === FRAME.stdin) child.stdin.write(payload);
  if (type === FRAME.stdinEnd) child.stdin.end();
}

function send(socket: Socket, type: string, text = ''): void {
  if (!socket.destroyed) socket.write(encodeFrame(type, 0, Buffer.from(text)));
}

const [folder = '', id = ''] = process.argv.slice(2);
new Shim(folder, id).listen();
