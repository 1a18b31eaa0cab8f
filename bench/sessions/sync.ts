import { hash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { renderTable } from '../report/markdown-table.ts';
import type { HotcellServer } from '../server/hotcell-server.ts';
import { progress } from '../support/progress.ts';
import { runCommand } from '../support/run-command.ts';
import { summarize, type Summary } from '../support/statistics.ts';
import type { Measured } from './measured.ts';
import { ask, createSession, destroySession } from './session-api.ts';

const FILES = 1000;
const FILES_PER_FOLDER = 50;
const MEAN_BYTES = 2500;
const MOST_TO_RSYNC = 3;
const FIRST_SYNCS = 5;

interface SourceFile {
  readonly path: string;
  readonly content: string;
  readonly hash: string;
}

/** A thousand files of 2.5 MB together, to an empty workspace and to one that has them, against rsync from folder to folder. */
export async function measureSync(
  server: HotcellServer,
  { scratch, rounds }: { scratch: string; rounds: number },
): Promise<Measured> {
  const files = makeFiles();
  const source = join(scratch, 'sync-source');
  for (const { path, content } of files) {
    mkdirSync(dirname(join(source, path)), { recursive: true });
    writeFileSync(join(source, path), content);
  }
  const first = { ours: [] as number[], rsync: [] as number[] };
  for (let round = 0; round < FIRST_SYNCS; round++) {
    progress(`first sync: ${round + 1} of ${FIRST_SYNCS}`);
    const id = await createSession(server, `bench-sync-${round}`);
    first.ours.push(await timed(() => ask(server, `/v1/sessions/${id}/sync`, { files })));
    await destroySession(server, id);
    first.rsync.push(await timed(() => rsync(source, join(scratch, `sync-target-${round}`))));
  }
  const id = await createSession(server, 'bench-sync');
  const body = { files: files.map(({ path, hash: sha256 }) => ({ path, hash: sha256 })) };
  await ask(server, `/v1/sessions/${id}/sync`, { files });
  const again = { ours: [] as number[], rsync: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    if (round % 10 === 0) progress(`sync without changes: ${round} of ${rounds}`);
    again.ours.push(
      await timed(async () => {
        const reply = await ask(server, `/v1/sessions/${id}/sync`, body);
        if (reply['skipped'] !== FILES) throw new Error(`sync: ${JSON.stringify(reply)}`);
      }),
    );
    again.rsync.push(await timed(() => rsync(source, join(scratch, 'sync-target-0'))));
  }
  await destroySession(server, id);
  const rows = [
    toRow('first', summarize(first.ours), summarize(first.rsync)),
    toRow('no change', summarize(again.ours), summarize(again.rsync)),
  ];
  return {
    title: `Sync of ${FILES} files`,
    table: renderTable(['', 'ours, ms', 'rsync -a, ms', '× rsync'], rows),
    requirements: [
      {
        text: `sync without changes / rsync -a ≤ ${MOST_TO_RSYNC}`,
        value: summarize(again.ours).median / summarize(again.rsync).median,
        holds: (value) => value <= MOST_TO_RSYNC,
      },
    ],
  };
}

function makeFiles(): SourceFile[] {
  return Array.from({ length: FILES }, (_, index) => {
    const content = `${index} `
      .repeat(MEAN_BYTES / 4)
      .slice(0, MEAN_BYTES / 2 + ((index * 7919) % MEAN_BYTES));
    const path = `folder-${Math.floor(index / FILES_PER_FOLDER)}/file-${index}.txt`;
    return { path, content, hash: hash('sha256', content) };
  });
}

async function rsync(source: string, target: string): Promise<void> {
  const { code, stderr } = await runCommand(['rsync', '-a', `${source}/`, `${target}/`]);
  if (code !== 0) throw new Error(`rsync: ${stderr}`);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

function toRow(name: string, ours: Summary, rsynced: Summary): string[] {
  return [name, ours.median.toFixed(1), rsynced.median.toFixed(1), (ours.median / rsynced.median).toFixed(2)];
}
