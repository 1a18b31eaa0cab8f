import { describe, expect, test } from 'vitest';
import type { Exec, ExecEvent, Usage } from '../core/exec.ts';
import { EventQueue } from '../lib/event-queue.ts';
import { FrameReader, encodeFrame, type Frame } from '../lib/frames.ts';
import { SyncIndex } from './synced-files.ts';
import { Workspace } from './workspace.ts';

const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };

/** A command in a cell that says whatever a test wants it to say. */
class ScriptedExec implements Exec {
  readonly #queue = new EventQueue<ExecEvent>();
  readonly events: AsyncIterable<ExecEvent> = this.#queue;
  readonly ended: Promise<void>;
  readonly #reader = new FrameReader(2 ** 20);
  readonly #answer: (exec: ScriptedExec, frame: Frame) => void;
  #end: () => void = () => {};
  isKilled = false;
  isForgotten = false;

  constructor(answer: (exec: ScriptedExec, frame: Frame) => void) {
    this.#answer = answer;
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  write(bytes: Uint8Array): void {
    for (const frame of this.#reader.push(bytes)) this.#answer(this, frame);
  }

  say(bytes: Uint8Array, type: 'stdout' | 'stderr' = 'stdout'): void {
    this.#queue.push({ type, bytes });
  }

  die(): void {
    this.#queue.push({ type: 'exit', outcome: { kind: 'exited', code: 1 }, usage: NO_USAGE });
    this.#queue.end();
    this.#end();
  }

  closeStdin(): void {
    this.die();
  }

  kill(): Promise<void> {
    this.isKilled = true;
    this.die();
    return Promise.resolve();
  }

  terminate(): void {}

  readonly lasting = { number: 1, forget: () => void (this.isForgotten = true) };

  usage(): Promise<Usage> {
    return Promise.resolve(NO_USAGE);
  }
}

type Answer = (exec: ScriptedExec, frame: Frame) => void;

function makeWorkspace(...answers: Answer[]): { workspace: Workspace; execs: ScriptedExec[] } {
  const execs: ScriptedExec[] = [];
  const workspace = new Workspace({
    exec: () => {
      const exec = new ScriptedExec(answers[execs.length] ?? ((self) => self.die()));
      execs.push(exec);
      return Promise.resolve(exec);
    },
    root: '/workspace/p',
    timeoutMs: 200,
  });
  return { workspace, execs };
}

const record = (letter: string, size = 0): Buffer => {
  const bytes = Buffer.alloc(47);
  bytes.write(letter, 0, 'latin1');
  bytes.writeBigUInt64LE(BigInt(size), 11);
  return bytes;
};
const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, 'latin1');
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
};
const clock = Buffer.alloc(16);
const says =
  (...frames: readonly (readonly [string, Uint8Array])[]): Answer =>
  (exec, { id }) =>
    exec.say(Buffer.concat(frames.map(([type, payload]) => encodeFrame(type, id, payload))));

const lost = { code: 'CELL_LOST', status: 503 };

describe('a guest that is not to be trusted', () => {
  test.each<[string, Answer]>([
    ['bytes that are no frames', (exec) => exec.say(Buffer.alloc(100, 0xff))],
    ['a frame without an end', (exec, { id }) => exec.say(Buffer.from([0x66, 0, 0, 0, id, 0x7f, 0, 0, 0]))],
    ['an answer to another request', (exec, { id }) => exec.say(encodeFrame('.', id + 1, clock))],
    ['an answer of another type', says(['s', Buffer.alloc(47)])],
    ['too few answers', says(['.', clock])],
    ['too many answers', says(['f', record('f')], ['f', record('f')], ['.', clock])],
    ['something after the last answer', says(['f', record('f')], ['.', clock], ['.', clock])],
    ['more content than announced', says(['f', record('f', 3)], ['d', Buffer.alloc(4)], ['.', clock])],
    ['content of what is no file', says(['f', record('d', 3)], ['d', Buffer.alloc(3)], ['.', clock])],
    ['content beyond the limit', says(['f', record('f', 1001)], ['d', Buffer.alloc(1)], ['.', clock])],
    ['content before any file', says(['d', Buffer.alloc(1)])],
    ['a kind that there is not', says(['f', record('?')], ['.', clock])],
    ['a size beyond all numbers', says(['f', record('f', 2 ** 60)], ['.', clock])],
    ['half a record', says(['f', record('f').subarray(0, 20)], ['.', clock])],
    ['no clock', says(['f', record('f')], ['.', Buffer.alloc(3)])],
    ['a refusal for no reason', says(['!', Buffer.from('?00000000')])],
    ['a refusal that is cut', says(['!', Buffer.from('r')])],
    ['nothing', () => {}],
    ['a sudden end', (exec) => exec.die()],
  ])('[RS-11] says %s: the read fails, and the next one starts another', async (_, answer) => {
    const honest = says(['f', record('f', 2)], ['d', Buffer.from('ok')], ['.', clock]);
    const { workspace, execs } = makeWorkspace(answer, honest);
    await expect(workspace.read('file', 1000)).rejects.toMatchObject(lost);
    expect(await workspace.read('file', 1000)).toMatchObject({ content: 'ok' });
    expect(execs).toHaveLength(2);
    expect(execs[0]?.isForgotten).toBe(true);
  });

  test.each<[string, Answer]>([
    [
      'a folder above the workspace',
      says(['D', Buffer.concat([text('../..'), text('x'), record('f')])], ['.', clock]),
    ],
    ['a name with a slash', says(['D', Buffer.concat([text(''), text('a/b'), record('f')])], ['.', clock])],
    ['the name ..', says(['D', Buffer.concat([text(''), text('..'), record('f')])], ['.', clock])],
    ['a name with NUL', says(['D', Buffer.concat([text(''), text('a\0'), record('f')])], ['.', clock])],
    ['a name that is cut', says(['D', Buffer.from([0, 0, 0, 9, 1])], ['.', clock])],
  ])('[RS-10] lists %s: no snapshot', async (_, answer) => {
    const { workspace, execs } = makeWorkspace(answer);
    await expect(workspace.snapshot()).rejects.toMatchObject(lost);
    expect(execs[0]?.isKilled).toBe(true);
  });

  test('[RS-10] lists without end: there is a bound', async () => {
    const folder = Buffer.concat([
      text(''),
      ...Array.from({ length: 3000 }, (_, at) => Buffer.concat([text(`f${at}`), record('f')])),
    ]);
    const { workspace, execs } = makeWorkspace((exec, { id }) => {
      for (let count = 0; count < 1000; count++) exec.say(encodeFrame('D', id, folder));
    });
    await expect(workspace.snapshot()).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
    expect(execs[0]?.isKilled).toBe(true);
  });

  const entry = (path: string, letter: string, target = ''): [string, Buffer] => [
    'E',
    Buffer.concat([text(path), text(target), record(letter)]),
  ];

  test.each<[string, Answer]>([
    ['an absolute path', says(entry('/etc/passwd', 'f'), ['.', Buffer.alloc(1)])],
    ['a path that leads out', says(entry('a/../../b', 'f'), ['.', Buffer.alloc(1)])],
    ['a file below a link', says(entry('a', 'l', '/etc'), entry('a/passwd', 'f'), ['.', Buffer.alloc(1)])],
    ['a device', says(entry('a', 'o'), ['.', Buffer.alloc(1)])],
    [
      'more than a portion',
      (exec, { id }) => {
        for (let count = 0; count < 100; count++) exec.say(encodeFrame('d', id, Buffer.alloc(60_000)));
      },
    ],
  ])('[RS-11] packs %s: the archive fails', async (_, answer) => {
    const { workspace } = makeWorkspace(answer);
    const reading = async (): Promise<void> => {
      for await (const part of workspace.archive()) void part;
    };
    await expect(reading()).rejects.toMatchObject(lost);
  });

  test('[RS-11] packs more of a file than there is: it is cut', async () => {
    const packed = Buffer.concat([text('a'), text(''), record('f', 3)]);
    const { workspace } = makeWorkspace(
      says(['E', packed], ['d', Buffer.from('abcdefgh')], ['d', Buffer.from('i')], ['.', Buffer.alloc(1)]),
    );
    const parts: Uint8Array[] = [];
    for await (const part of workspace.archive()) parts.push(part);
    const archive = Buffer.concat(parts);
    expect(archive.length).toBe(4 * 512);
    expect(archive.subarray(512).toString().replaceAll('\0', '')).toBe('abc');
  });

  test('[RS-09] invents or forgets results of a change: the change fails', async () => {
    const stats: Answer = says(['s', record('-')], ['.', clock]);
    const acknowledges: Answer = says(['a', Buffer.alloc(0)]);
    const withResults =
      (count: number): Answer =>
      (exec, frame) => {
        if (frame.type === 'S') stats(exec, frame);
        else if (frame.type === 'X')
          says(
            [
              'w',
              Buffer.concat(
                Array.from({ length: count }, () => Buffer.concat([Buffer.alloc(2), record('f')])),
              ),
            ],
            ['.', clock],
          )(exec, frame);
        else acknowledges(exec, frame);
      };
    const index = SyncIndex.empty();
    const file = { path: 'a', content: new Uint8Array([1]) };
    for (const count of [0, 2]) {
      await expect(makeWorkspace(withResults(count)).workspace.write([file], index)).rejects.toMatchObject(
        lost,
      );
    }
    expect([...index.brought()]).toEqual([]);
    await makeWorkspace(withResults(1)).workspace.write([file], index);
    expect([...index.brought()]).toEqual(['a']);
  });

  test('[RS-11] what it complains about is told, within bounds', async () => {
    const { workspace } = makeWorkspace((exec) => {
      exec.say(Buffer.from(`no perl${'!'.repeat(100_000)}`), 'stderr');
      exec.die();
    });
    const error = await workspace.read('x', 1).catch((problem: unknown) => problem);
    expect(String(error)).toContain('no perl');
    expect(String(error).length).toBeLessThan(2000);
  });

  test('[RS-11] that never starts holds nobody up', async () => {
    let start: (exec: ScriptedExec) => void = () => {};
    const workspace = new Workspace({
      exec: () => new Promise((resolve) => (start = resolve)),
      root: '/workspace/p',
      timeoutMs: 50,
    });
    await expect(workspace.read('x', 1)).rejects.toMatchObject(lost);
    const late = new ScriptedExec(() => {});
    start(late);
    await late.ended;
    expect(late.isKilled).toBe(true);
  });

  test('[RS-11] is not started before it is needed, and ends when it is no longer', async () => {
    const { workspace, execs } = makeWorkspace(says(['f', record('-')], ['.', clock]));
    await workspace.close();
    expect(execs).toEqual([]);
    await expect(workspace.read('x', 1)).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await workspace.close();
    expect(execs).toHaveLength(1);
    expect(execs[0]?.isForgotten).toBe(true);
  });
});
