import { requireLastingCell, requireLastingExec } from '../../src/core/capabilities.ts';
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { TMP_OF_WORKSPACE, type Cell } from '../../src/core/cell.ts';
import { FurnishedCell } from '../../src/cells/furnished-cell.ts';
import { sightOfWorkspace } from '../../src/cells/require-sight.ts';
import { HotcellError } from '../../src/core/errors.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import type { Exec } from '../../src/core/exec.ts';
import { bash } from './cells.ts';
import { lastingSpec, toDriver, type DriverWords } from './lasting-drivers.ts';

/** What a server that is about to be killed knows. */
export interface LastWords {
  readonly record: string;
  readonly commands: readonly { readonly id: number; readonly text: string }[];
}

export interface ChildTask {
  readonly words: DriverWords;
  readonly store: string;
  readonly task: 'work' | 'leave' | 'unseen';
  /** For `unseen`: where something is mounted that the engine does not see. */
  readonly folder?: string;
}

/** Prints more than any pipe holds, then asks and ends. */
export const LONG_WORK =
  'for i in $(seq 1 60000); do echo line $i; done; echo done >&2; read word; echo "got $word"; exit 3';

async function readSome(exec: Exec, bytes: number): Promise<string> {
  let text = '';
  for await (const event of exec.events) {
    if (event.type === 'stdout') text += Buffer.from(event.bytes).toString();
    if (text.length >= bytes) return text;
  }
  throw new Error(`ended too early: ${text}`);
}

async function work(cell: Cell): Promise<LastWords> {
  const long = await cell.exec(bash(LONG_WORK));
  const shell = await cell.exec({
    argv: ['bash', '--norc', '-i'],
    env: { PS1: '> ', TERM: 'dumb' },
    terminal: { rows: 20, columns: 70 },
  });
  const commands = [
    { id: requireLastingExec(long).number, text: await readSome(long, 100_000) },
    { id: requireLastingExec(shell).number, text: await readSome(shell, 2) },
  ];
  return { record: requireLastingCell(cell).record, commands };
}

const { words, store, task, folder = '' } = JSON.parse(process.argv[2] ?? '') as ChildTask;
const driver = toDriver(words);

if (task === 'unseen') {
  // Also below the mount, so that the engine finds all that it looks for.
  mkdirSync(join(folder, TMP_OF_WORKSPACE));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder]);
  mkdirSync(join(folder, TMP_OF_WORKSPACE));
  const creating = FurnishedCell.make({
    driver,
    spec: lastingSpec(store, { folder, owner: 0x70000101 }),
    sight: await sightOfWorkspace(folder),
    log: SILENT_LOG,
  });
  const code = await creating.then(
    () => 'made',
    (error: unknown) => (error instanceof HotcellError ? error.code : String(error)),
  );
  await driver.close();
  process.stdout.write(`${code}\n`);
} else {
  const cell = await driver.create(lastingSpec(store));
  process.stdout.write(`${JSON.stringify(await work(cell))}\n`);
  // An orderly server goes by itself, without being told to exit.
  if (task === 'leave') await driver.close();
  else setInterval(() => {}, 1000);
}
