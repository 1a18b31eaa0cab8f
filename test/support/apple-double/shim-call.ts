import { spawn } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { FrameReader, encodeFrame } from '../../../src/lib/frames.ts';
import { FRAME, LARGEST_FRAME, type ShimRequest } from './shim-protocol.ts';
import type { DoubleState } from './state.ts';

const SHIM = fileURLToPath(new URL('shim.ts', import.meta.url));
const LOOK_MS = 5;

export type ShimEnd =
  | { readonly kind: 'started' }
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'failed'; readonly words: string }
  | { readonly kind: 'hung up' };

/** A process that no call of the double is the parent of. */
export async function startShim(state: DoubleState, id: string): Promise<void> {
  spawn(process.execPath, [SHIM, state.folder, id], {
    detached: true,
    stdio: ['ignore', 'ignore', openSync(join(state.folder, 'shims.log'), 'a')],
  }).unref();
  while (!existsSync(state.socketOf(id))) await sleep(LOOK_MS);
}

/** Asks the process of a container for something, and passes streams on until it is done. */
export function callShim(
  state: DoubleState,
  id: string,
  request: ShimRequest,
  options: { readonly interactive: boolean; readonly until: 'started' | 'exited' },
): Promise<ShimEnd> {
  const socket = connect(state.socketOf(id));
  const reader = new FrameReader(LARGEST_FRAME);
  socket.write(encodeFrame(FRAME.request, 0, Buffer.from(JSON.stringify(request))));
  if (options.interactive) passInput(socket);
  return new Promise((resolve) => {
    const end = (reached: ShimEnd): void => {
      socket.destroy();
      resolve(reached);
    };
    socket.on('error', () => end({ kind: 'hung up' }));
    socket.on('close', () => end({ kind: 'hung up' }));
    socket.on('data', (bytes) => {
      for (const { type, payload } of reader.push(bytes)) {
        const text = Buffer.from(payload).toString();
        if (type === FRAME.stdout) passOutput(process.stdout, payload, socket);
        if (type === FRAME.stderr) passOutput(process.stderr, payload, socket);
        if (type === FRAME.started && options.until === 'started') end({ kind: 'started' });
        if (type === FRAME.failed) end({ kind: 'failed', words: text });
        if (type === FRAME.exited) end({ kind: 'exited', code: Number(text) });
      }
    });
  });
}

function passInput(socket: Socket): void {
  process.stdin.on('data', (bytes: Buffer) => {
    if (socket.write(encodeFrame(FRAME.stdin, 0, bytes))) return;
    process.stdin.pause();
    socket.once('drain', () => process.stdin.resume());
  });
  process.stdin.on('end', () => {
    if (socket.writable) socket.write(encodeFrame(FRAME.stdinEnd, 0));
  });
  process.stdin.on('error', () => {});
}

function passOutput(to: NodeJS.WriteStream, bytes: Uint8Array, from: Socket): void {
  if (to.write(bytes)) return;
  from.pause();
  to.once('drain', () => from.resume());
}
