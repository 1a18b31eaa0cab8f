import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EventConnection, ReceivedEvent } from '../../../src/http/sessions/event-reader.double.ts';
import { waitFor } from '../../support/leftovers.ts';
import { OCI_FRESH, describeEach } from '../../support/served-by.ts';
import type { TestServer } from '../../support/server.ts';
import {
  bytesOf,
  openSession,
  startSessionServer,
  stopSessionServer,
  type TestSession,
} from '../../support/sessions.ts';

/** Of the unnamed form. */
function messagesOf(connection: EventConnection): Record<string, unknown>[] {
  return connection.events.map(({ data }) => JSON.parse(data) as Record<string, unknown>);
}

// Streams come from what the server keeps, whatever made the cell.
describeEach([OCI_FRESH], (way) => {
  let server: TestServer;
  let session: TestSession;
  beforeAll(async () => {
    server = await startSessionServer(way);
    session = await openSession(server);
  });
  afterAll(() => stopSessionServer(server));

  describe('the two forms', () => {
    const COMMAND = 'echo -n "PASS src/utils.test.ts"; echo >&2';

    test('[RS-05] named events, as the first description has them', async () => {
      const response = await fetch(`${server.url}${session.path}/exec`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify({ command: COMMAND }),
      });
      expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      const text = await response.text();
      expect(text).toContain('event: stdout\ndata: PASS src/utils.test.ts\nid: ');
      expect(text).toContain('event: stderr\ndata: \ndata: \nid: ');
      const exit = new RegExp(
        `\nevent: exit\ndata: \\{"exit_code":0,"cwd":"${session.workspace}","duration_ms":[0-9.]+,.*\\}\nid: 23\n\n$`,
      );
      expect(text).toMatch(exit);
      expect(
        text
          .split('\n\n')
          .slice(0, -1)
          .every((event) => /\nid: \d+$/.test(event)),
      ).toBe(true);
    });

    test('[RS-05] events without names, as the client of the IDE parses them', async () => {
      using connection = await session.events('/exec?format=data', {
        body: { command: COMMAND, stream: true },
        headers: { accept: '*/*' },
      });
      await connection.ended;
      expect(
        connection.events.every(({ type, lastEventId }) => type === 'message' && lastEventId !== ''),
      ).toBe(true);
      const messages = messagesOf(connection);
      expect(messages.slice(0, -1).toSorted((one) => (one['type'] === 'stdout' ? -1 : 1))).toEqual([
        { type: 'stdout', data: 'PASS src/utils.test.ts' },
        { type: 'stderr', data: '\n' },
      ]);
      expect(messages.at(-1)).toMatchObject({
        type: 'done',
        exitCode: 0,
        cwd: session.workspace,
        durationMs: expect.any(Number),
        changedFiles: [],
      });
    });

    test('[RS-05, RS-10] the files that a command changed come with its end', async () => {
      const body = { command: 'echo made > made.txt', stream: true, report_changed_files: true };
      using connection = await session.events('/exec?format=data', { body });
      await connection.ended;
      expect(messagesOf(connection).at(-1)?.['changedFiles']).toEqual([
        { path: 'made.txt', change: 'added', size: 5, content: 'made\n', encoding: 'utf8' },
      ]);
    });
  });

  describe('readers', () => {
    test('[RS-05] output comes as it is written, not at the end', async () => {
      const command = 'echo one; until [ -e go ]; do sleep 0.02; done; echo two';
      using connection = await session.events('/exec', { body: { command } });
      await waitFor(
        'the first line comes',
        () => bytesOf(connection.events, 'stdout').toString() === 'one\n',
      );
      await session.post('/upload', { files: [{ path: 'go', content: '' }] });
      await connection.ended;
      expect(bytesOf(connection.events, 'stdout').toString()).toBe('one\ntwo\n');
    });

    test('[RS-05] one that goes away comes back and misses nothing; the command went on', async () => {
      await using own = await openSession(server);
      const body = { command: 'for i in $(seq 30); do echo line $i; sleep 0.02; done; echo end >&2' };
      const first = await own.events('/exec', { body });
      await waitFor('some lines came', () => first.events.length > 5);
      first[Symbol.dispose]();
      const id = String(first.headers['x-hotcell-exec-id']);
      const seen: ReceivedEvent[] = [...first.events];
      // Away again, this time in the middle and at once.
      using second = await own.events(`/execs/${id}/output`, {
        headers: { 'last-event-id': seen.at(-1)?.lastEventId ?? '' },
      });
      await waitFor('more lines came', () => second.events.length > 5);
      second[Symbol.dispose]();
      seen.push(...second.events);
      await own.find(id, 30);
      using third = await own.events(`/execs/${id}/output`, {
        headers: { 'last-event-id': seen.at(-1)?.lastEventId ?? '' },
      });
      await third.ended;
      seen.push(...third.events);
      const lines = Array.from({ length: 30 }, (_, index) => `line ${index + 1}\n`).join('');
      expect([bytesOf(seen, 'stdout').toString(), bytesOf(seen, 'stderr').toString()]).toEqual([
        lines,
        'end\n',
      ]);
      expect(third.events.at(-1)?.type).toBe('exit');
    });

    test('[RS-05] from any place, also after the end, and two at once read the same', async () => {
      const { exec_id: id, stdout_bytes: total } = await session.exec('echo one; echo two; echo three');
      const read = async (place: number, header: boolean): Promise<ReceivedEvent[]> => {
        using connection = await session.events(
          `/execs/${id}/output${header ? '?from=0' : `?from=${place}`}`,
          {
            headers: header ? { 'last-event-id': String(place) } : {},
          },
        );
        await connection.ended;
        return [...connection.events];
      };
      for (let place = 0; place <= total; place += 1) {
        const [one, other] = await Promise.all([read(place, true), read(place, false)]);
        expect(bytesOf(one, 'stdout').toString()).toBe('one\ntwo\nthree\n'.slice(place));
        expect(other).toEqual(one);
        expect(one.at(-1)).toMatchObject({ type: 'exit', lastEventId: String(total) });
      }
    });

    test.each(['-1', '1.5', 'x', '99999999999999999999'])(
      '[RS-05] Last-Event-ID %s is refused',
      async (id) => {
        const { exec_id: execId } = await session.exec('true');
        using connection = await session.events(`/execs/${execId}/output`, {
          headers: { 'last-event-id': id },
        });
        expect(connection.status).toBe(422);
      },
    );
  });
});
