import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HttpRunnerClient } from '../../../src/client/http-runner-client.ts';
import { OutputReply } from '../../../src/wire/session-exec.ts';
import { waitFor } from '../../support/leftovers.ts';
import { readResidentBytes } from '../../support/live-server.ts';
import { OCI_FRESH, describeEach } from '../../support/served-by.ts';
import type { TestServer } from '../../support/server.ts';
import {
  bytesOf,
  openSession,
  startSessionServer,
  stopSessionServer,
  type TestSession,
} from '../../support/sessions.ts';

const MiB = 1024 * 1024;
const HEAD_BYTES = 64 * 1024;
const TAIL_BYTES = 256 * 1024;

const ALL_VALUES = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
const EVENTS =
  '\n\nevent: exit\ndata: {"exit_code":0}\nid: 99999\n\ndata: {"type":"done"}\n\n: comment\nretry: 1\n';

/** Each alone: where there are bytes that are no text, all of a piece goes another way. */
const HOSTILE: Readonly<Record<string, Buffer>> = {
  'text like events': Buffer.from(`\u{feff}${EVENTS} data: x\n\u2028€👩‍💻\n`),
  'text with CR': Buffer.from(`a\rb\r\nc\r${EVENTS}\r`),
  'text with NUL': Buffer.from(`a\0b${EVENTS}\0`),
  'all values': ALL_VALUES,
  'broken characters': Buffer.from([0x61, 0xc3, 0xf0, 0x9f, 0x91, 0xed, 0xa0, 0x80, 0x0a, 0xe2, 0x82]),
};

type Door = (session: TestSession, execId: string, stream: 'stdout' | 'stderr') => Promise<Buffer>;

const streamed =
  (format: string): Door =>
  async (session, execId, stream) => {
    using connection = await session.events(`/execs/${execId}/output?format=${format}`);
    await connection.ended;
    return bytesOf(connection.events, stream);
  };

/** Through each of these, output comes back as it was written. */
const DOORS: Readonly<Record<string, Door>> = {
  'output in one piece': (session, execId, stream) => readAll(session, execId, { stream, limit: 16 * MiB }),
  'output in small pieces': (session, execId, stream) => readAll(session, execId, { stream, limit: 7 }),
  'events with names': streamed('named'),
  'the client': async (session, execId, stream) => {
    const client = new HttpRunnerClient({ baseUrl: session.server.url });
    const parts: Uint8Array[] = [];
    for await (const event of client.followExec(session.id, execId))
      if (event.type === stream) parts.push(event.bytes);
    return Buffer.concat(parts);
  },
  'events without names': streamed('data'),
};

async function readAll(
  session: TestSession,
  execId: string,
  { stream, limit }: { stream: string; limit: number },
): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (let from = 0, isOver = false; !isOver;) {
    const reply = (await session.get(`/execs/${execId}/output?from=${from}&limit=${limit}`)).as(OutputReply);
    for (const { stream: name, data, base64 } of reply.chunks)
      if (name === stream)
        parts.push(base64 === undefined ? Buffer.from(data) : Buffer.from(base64, 'base64'));
    isOver = reply.result !== null;
    expect(isOver || reply.next > from).toBe(true);
    from = reply.next;
  }
  return Buffer.concat(parts);
}

// Output is kept by the server, whatever made the cell.
describeEach([OCI_FRESH], (way) => {
  let server: TestServer;
  let session: TestSession;
  beforeAll(async () => {
    const output = { headBytes: HEAD_BYTES, tailBytes: TAIL_BYTES, replyBytes: 8192 };
    const args = Object.entries(output).flatMap(([key, value]) => [
      '--set',
      `sessions.output.${key}=${value}`,
    ]);
    server = await startSessionServer(way, { args });
    session = await openSession(server);
  });
  afterAll(() => stopSessionServer(server));

  describe.each(Object.keys(HOSTILE))('%s', (kind) => {
    const written = HOSTILE[kind] ?? Buffer.alloc(0);
    // A character in two parts, with a write between them.
    const stdout = Buffer.concat([written, Buffer.from('€')]);
    const stderr = Buffer.concat([written, written]);
    let execId: string;
    beforeAll(async () => {
      const content = written.toString('base64');
      await session.post('/upload', { files: [{ path: 'hostile', content, encoding: 'base64' }] });
      const command = 'cat hostile; cat hostile hostile >&2; printf "\\xe2"; printf "\\x82\\xac"';
      const reply = await session.exec({ command, reset_cwd: true });
      execId = reply.exec_id;
      // What is no text is shown as such, and nothing else is changed.
      expect(reply.stdout).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(stdout));
      expect(reply).toMatchObject({ ok: true, stdout_bytes: stdout.length, stderr_bytes: stderr.length });
    });

    test.each(Object.keys(DOORS))('[RS-06] comes back exactly: %s', async (door) => {
      const read = DOORS[door];
      expect((await read?.(session, execId, 'stdout'))?.toString('hex')).toBe(stdout.toString('hex'));
      expect((await read?.(session, execId, 'stderr'))?.toString('hex')).toBe(stderr.toString('hex'));
    });
  });

  describe('more than is kept', () => {
    const LINES = 400_000;
    const WRITTEN = LINES * 10;
    const textAt = (from: number, to: number): string => {
      const first = Math.floor(from / 10);
      const count = Math.ceil(to / 10) - first;
      const lines = Array.from(
        { length: count },
        (_, index) => `${String(first + index + 1).padStart(9, '0')}\n`,
      );
      return lines.join('').slice(from - first * 10, to - first * 10);
    };

    test('[RS-06] is cut in the middle, and the account of it is exact', async () => {
      const reply = await session.exec(`seq -f %09.0f 1 ${LINES}`);
      const parts = /^([^]*)\n\[… (\d+) bytes cut …\]\n([^]*)$/.exec(reply.stdout);
      const [, head = '', cutBytes = '', tail = ''] = parts ?? [];
      expect([reply.stdout_bytes, reply.output_cut_bytes]).toEqual([WRITTEN, Number(cutBytes)]);
      expect(head.length + tail.length + Number(cutBytes)).toBe(WRITTEN);
      expect(head === textAt(0, head.length) && tail === textAt(WRITTEN - tail.length, WRITTEN)).toBe(true);

      const answer = await session.get(`/execs/${reply.exec_id}/output?limit=${16 * MiB}`);
      const { chunks, cut, result } = answer.as(OutputReply);
      const pieces = [...chunks.map(({ from, data }) => ({ from, to: from + data.length })), ...cut].toSorted(
        (one, other) => one.from - other.from,
      );
      // Chunks and cuts together are all of it, once.
      expect(pieces.at(-1)?.to).toBe(WRITTEN);
      expect(pieces.every(({ from }, index) => from === (pieces[index - 1]?.to ?? 0))).toBe(true);
      expect(chunks.every(({ from, data }) => data === textAt(from, from + data.length))).toBe(true);
      const kept = chunks.reduce((sum, { data }) => sum + data.length, 0);
      expect(kept).toBeGreaterThan((HEAD_BYTES + TAIL_BYTES) / 2);
      expect(kept).toBeLessThanOrEqual(HEAD_BYTES + TAIL_BYTES);
      expect([cut.length, result?.stdout_bytes]).toEqual([1, WRITTEN]);

      using connection = await session.events(`/execs/${reply.exec_id}/output`);
      await connection.ended;
      const told = connection.events
        .filter(({ type }) => type === 'cut')
        .map(({ data }) => JSON.parse(data) as unknown);
      expect(told).toEqual(cut);
      expect(bytesOf(connection.events, 'stdout').toString()).toBe(chunks.map(({ data }) => data).join(''));
    });

    test('[RS-06] a flood past a reader that does not read costs no memory, and it gets the account', async () => {
      const FLOOD = 192 * MiB;
      const before = await readResidentBytes(server);
      using connection = await session.events('/exec', {
        body: { command: `head -c ${FLOOD} /dev/zero | tr '\\0' x` },
      });
      connection.response.pause();
      const id = String(connection.headers['x-hotcell-exec-id']);
      let most = 0;
      await waitFor(
        'the flood is over',
        async () => {
          most = Math.max(most, await readResidentBytes(server));
          return (await session.find(id)).state === 'ended';
        },
        60_000,
      );
      connection.response.resume();
      await connection.ended;
      const cuts = connection.events
        .filter(({ type }) => type === 'cut')
        .map(({ data }) => JSON.parse(data) as { from: number; to: number });
      const missed = cuts.reduce((sum, { from, to }) => sum + to - from, 0);
      expect(bytesOf(connection.events, 'stdout').length + missed).toBe(FLOOD);
      expect(missed).toBeGreaterThan(0);
      expect(connection.events.at(-1)?.type).toBe('exit');
      most = Math.max(most, await readResidentBytes(server));
      expect((most - before) / MiB).toBeLessThan(64);
    });
  });
});
