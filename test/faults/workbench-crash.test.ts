import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { listProcesses, waitFor } from '../support/leftovers.ts';
import { describeEach, FRESH_WAYS } from '../support/served-by.ts';
import { countCellsOf, listCells, waitUntilNothingIsLeft } from '../support/workbench-cells.ts';
import {
  makeSiteWords,
  openFromWords,
  removeSiteFolders,
  request,
  type SiteWords,
} from '../support/workbench-site.ts';

const CHILD = fileURLToPath(new URL('../support/workbench-child.ts', import.meta.url));

function startServer(words: SiteWords, code: string): ChildProcess {
  const server = spawn(process.execPath, [CHILD, JSON.stringify({ ...words, code })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  countCellsOf(server.pid);
  return server;
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('the child has no output');
  for await (const line of createInterface({ input: stdout })) return line;
  throw new Error('the child said nothing');
}

describeEach(FRESH_WAYS, (way) => {
  beforeAll(() => way.prepare(), 300_000);

  test('[MC-09, SC-02] kill -9 of the server: the next start leaves nothing of it, and works', async () => {
    const words = makeSiteWords(way.driver);
    const marker = `6${Date.now() % 1e8}`;
    const code = `Bun.spawn(["sleep", "${marker}"]); console.log("begun"); await Bun.sleep(1e6);`;
    const server = startServer(words, code);
    try {
      expect(await firstLine(server)).toBe('running');
      expect(await listCells(words)).toHaveLength(1);
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
      const folder = `${words.stateDirectory}-workbench`;
      const [abandoned = ''] = readdirSync(folder);
      expect(abandoned).not.toBe('');

      const opened = await openFromWords(words);
      try {
        // Without any run: whoever starts again after a crash clears away first.
        await waitFor('the folders are gone', () => !existsSync(`${folder}/${abandoned}`));
        await waitFor('the cell is gone', async () => (await listCells(words)).length === 0);
        const isAlive = (): boolean => listProcesses().some((line) => line.includes(marker));
        await waitFor('nothing of the old code runs', () => !isAlive());
        const bench = opened.open({ tenant: 'me' });
        expect(await bench.run(request('console.log("again")')).result).toMatchObject({ stdout: 'again\n' });
      } finally {
        await opened.close();
      }
      await waitUntilNothingIsLeft(words);
    } finally {
      server.kill('SIGKILL');
      removeSiteFolders(words);
    }
  });

  test('[MC-09, SC-02] kill -9 of the server while its first cell starts', async () => {
    const words = makeSiteWords(way.driver);
    const server = startServer(words, 'console.log("begun"); await Bun.sleep(1e6);');
    try {
      await waitFor('a cell is on its way', async () => (await listCells(words)).length > 0);
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
      const opened = await openFromWords(words);
      const bench = opened.open({ tenant: 'me' });
      expect(await bench.run(request('console.log("again")')).result).toMatchObject({ stdout: 'again\n' });
      await waitFor('only the new cell is there', async () => (await listCells(words)).length === 1);
      await opened.close();
      await waitUntilNothingIsLeft(words);
    } finally {
      server.kill('SIGKILL');
      removeSiteFolders(words);
    }
  });
});
