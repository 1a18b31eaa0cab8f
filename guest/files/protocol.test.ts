import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FrameReader, encodeFrame, type Frame } from '../../src/lib/frames.ts';
import { withWorkspace, type ChildExec, type TestWorkspace } from './harness.ts';

/** Speaks to the guest without anybody who checks what is said. */
class Talk {
  readonly #exec: ChildExec;
  readonly #reader = new FrameReader(2 ** 20);
  readonly #events: AsyncIterator<{ readonly type: string; readonly bytes?: Uint8Array }>;

  constructor(box: TestWorkspace) {
    this.#exec = box.start({ argv: ['perl', '{guest}/files.pl', box.root], env: {} });
    this.#events = this.#exec.events[Symbol.asyncIterator]();
  }

  /** All frames up to the first one of these types. */
  async ask(type: string, payload: Uint8Array, until = '.!a'): Promise<Frame[]> {
    this.send(type, payload);
    const frames: Frame[] = [];
    for (;;) {
      const { value, done } = await this.#events.next();
      if (done === true || value.bytes === undefined) throw new Error('the guest has ended');
      frames.push(...this.#reader.push(value.bytes));
      if (frames.some((frame) => until.includes(frame.type))) return frames;
    }
  }

  send(type: string, payload: Uint8Array): void {
    this.#exec.write(encodeFrame(type, 1, payload));
  }

  async end(): Promise<void> {
    this.#exec.closeStdin();
    await this.#exec.ended;
  }
}

const text = (value: string): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([length, Buffer.from(value)]);
};
const letters = (frames: readonly Frame[]): string => frames.map(({ type }) => type).join('');

const ESCAPES = [
  '../outside/file',
  'x/../../outside/file',
  '/etc/passwd',
  './../outside/file',
  'link/file',
  'x//file',
  '..',
  '.',
  'x/.',
  `${'y/'.repeat(2500)}z`,
];

async function withTalk(use: (talk: Talk, box: TestWorkspace) => Promise<void>): Promise<void> {
  await withWorkspace(async (box) => {
    mkdirSync(box.outside, { mode: 0o777 });
    writeFileSync(join(box.outside, 'file'), 'outside', { mode: 0o666 });
    await box.sh('mkdir x; echo file >x/file; ln -s ../outside link; ln -s ../outside/file filelink');
    const talk = new Talk(box);
    try {
      await use(talk, box);
    } finally {
      await talk.end();
    }
    expect(readdirSync(box.outside)).toEqual(['file']);
    expect(readFileSync(join(box.outside, 'file'), 'utf8')).toBe('outside');
    expect(box.leftovers()).toEqual([]);
  });
}

describe('the guest by itself', () => {
  test.each([...ESCAPES, 'filelink'].map((path) => [path.slice(0, 30), path]))(
    '[RS-11] does not read %s',
    (_, path) =>
      withTalk(async (talk) => {
        const frames = await talk.ask('G', Buffer.concat([Buffer.alloc(8, 0x7f), Buffer.from(path)]));
        expect(letters(frames)).toBe('f.');
        expect(String.fromCharCode(frames[0]?.payload[0] ?? 0)).toMatch(/[xld]/);
        const list = await talk.ask('L', Buffer.concat([Buffer.alloc(4, 0x7f), Buffer.from(path)]));
        expect(letters(list)).toBe('!');
      }),
  );

  test.each([...ESCAPES, 'filelink'].map((path) => [path.slice(0, 30), path]))(
    '[RS-08] does not write, remove or prune %s',
    (_, path) =>
      withTalk(async (talk, box) => {
        const before = box.tree();
        const description = Buffer.from([0x01, 0xa4, 0, 0, 0, 0, 0, 0, 0, 0]);
        for (const letter of ['W', 'D', 'R']) {
          await talk.ask('B', letter === 'W' ? description : Buffer.alloc(0));
          await talk.ask('P', Buffer.concat([Buffer.from(letter), text(path), text('')]));
          const answer = letters(await talk.ask('X', Buffer.alloc(0)));
          // Folders are only removed if that can be done, and here it cannot.
          expect(letter === 'R' && answer !== '!' ? 'w.' : '!').toBe(answer);
        }
        expect(box.tree()).toEqual(before);
      }),
  );

  test('[RS-10] walks no further than it may', () =>
    withTalk(async (talk) => {
      const limit = (most: number): Buffer => Buffer.from([0, 0, 0, most]);
      expect(letters(await talk.ask('W', limit(4)))).toBe('DD.');
      const [refusal, ...rest] = (await talk.ask('W', limit(3))).toReversed();
      expect([refusal?.type, String.fromCharCode(refusal?.payload[0] ?? 0)]).toEqual(['!', 'l']);
      expect(letters(rest)).not.toContain('.');
    }));

  test('[RS-08] passes over what is left of a batch that has failed', () =>
    withTalk(async (talk, box) => {
      await talk.ask('B', Buffer.alloc(0));
      await talk.ask('P', Buffer.concat([Buffer.from('D'), text('none'), text('')]));
      expect(letters(await talk.ask('X', Buffer.alloc(0)))).toBe('!');
      expect(box.leftovers()).toEqual([]);
      talk.send('C', Buffer.from('late'));
      talk.send('X', Buffer.alloc(0));
      expect(letters(await talk.ask('S', Buffer.from('x')))).toBe('s.');
    }));
});
