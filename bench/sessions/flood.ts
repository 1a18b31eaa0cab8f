import { setTimeout as sleep } from 'node:timers/promises';
import { renderTable } from '../report/markdown-table.ts';
import type { HotcellServer } from '../server/hotcell-server.ts';
import { progress } from '../support/progress.ts';
import type { Measured } from './measured.ts';
import { ask, createSession, destroySession } from './session-api.ts';

const GB = 1e9;
const MiB = 1024 * 1024;
const MOST_GROWTH_MIB = 64;
/** The reader takes a look this often, at one chunk. */
const READ_EVERY_MS = 20;
const LOOK_EVERY_MS = 100;

/** A flood of output through SSE to somebody who reads slowly, with the memory of the server beside it. */
export async function measureFlood(server: HotcellServer, gigabytes: number): Promise<Measured> {
  const id = await createSession(server, 'bench-flood');
  const before = await residentBytes(server);
  const startedAt = performance.now();
  const bytes = gigabytes * GB;
  const { exec_id: exec } = await ask(server, `/v1/sessions/${id}/exec`, {
    command: `head -c ${bytes} /dev/zero | tr '\\0' x`,
    background: true,
  });
  const reader = await server.client.open(`/v1/sessions/${id}/execs/${String(exec)}/output`, {
    accept: 'text/event-stream',
  });
  const waited = ask(server, `/v1/sessions/${id}/exec`, { command: 'true' });
  let peak = before;
  let read = 0;
  const over = new AbortController();
  const watch = (async () => {
    while (!over.signal.aborted) {
      peak = Math.max(peak, await residentBytes(server));
      await sleep(LOOK_EVERY_MS);
    }
  })();
  await waited;
  let ended: number | undefined;
  for await (const chunk of reader) {
    read += chunk.length;
    progress(`flood: ${(read / MiB).toFixed(0)} MiB read`);
    if (ended === undefined && (await outputBytes(server, id, String(exec))) >= bytes)
      ended = performance.now();
    if (ended === undefined) await sleep(READ_EVERY_MS);
  }
  over.abort();
  await watch;
  await destroySession(server, id);
  const growth = (peak - before) / MiB;
  const seconds = ((ended ?? performance.now()) - startedAt) / 1000;
  return {
    title: `${gigabytes} GB of output to a slow reader`,
    table: renderTable(
      ['MB a second', 'MiB at first', 'MiB at most', 'MiB that the reader got'],
      [[(bytes / 1e6 / seconds).toFixed(0), toText(before), toText(peak), (read / MiB).toFixed(0)]],
    ),
    requirements: [
      {
        text: `growth of the server, MiB ≤ ${MOST_GROWTH_MIB}`,
        value: growth,
        holds: (value) => value <= MOST_GROWTH_MIB,
      },
    ],
  };
}

async function outputBytes(server: HotcellServer, id: string, exec: string): Promise<number> {
  const { text } = await server.client.get(`/v1/sessions/${id}/execs/${exec}`);
  return (JSON.parse(text) as { output_bytes: number }).output_bytes;
}

async function residentBytes(server: HotcellServer): Promise<number> {
  const { text } = await server.client.get('/metrics');
  return Number(/^hotcell_resident_memory_bytes (\S+)/m.exec(text)?.[1]);
}

function toText(bytes: number): string {
  return (bytes / MiB).toFixed(0);
}
