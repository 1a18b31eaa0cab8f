import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { toSizeText } from '../../lib/size-text.ts';
import { listenForStop } from '../listen-for-stop.ts';
import type { CommandContext } from '../program.ts';
import { count } from '../render/count.ts';
import { toPrintable } from '../../lib/printable.ts';
import { collectFiles, USUALLY_SKIPPED } from '../session/collect-files.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../session/connect.ts';
import { getFiles } from '../session/get-files.ts';
import { putFiles } from '../session/put-files.ts';
import { collect } from '../settings-options.ts';
import { SlowNote } from '../slow-note.ts';
import type { Terminal } from '../terminal.ts';
import { toWhole } from './session-life.ts';

const PUT_EXAMPLES = `
Examples:
  hotcell session put "$id" main.py
  hotcell session put "$id" ./data input/data

REMOTE is a path below the workspace, the name of LOCAL unless given; with a / at its end LOCAL is
put into it. Files there are replaced. \`sync\` is faster for the same folder again and again.`;

export function addPutCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('put')
    .description('copy a file or a folder into the workspace')
    .argument('<session>', 'its id')
    .argument('<local>', 'file or folder here')
    .argument('[remote]', 'path below the workspace')
    .addHelpText('after', PUT_EXAMPLES)
    .action(
      async (sessionId: string, local: string, remote: string | undefined, options: ConnectionOptions) => {
        const { terminal } = context;
        const client = await connect(options, context);
        const { files, leftOut } = await putFiles(client, { sessionId, local, remote }, terminal);
        sayLeftOut(leftOut, terminal);
        if (options.json === true) terminal.json({ files, left_out: leftOut });
        else terminal.line(`put ${count(files, 'file')}`);
      },
    );
  addConnectionOptions(command);
}

const GET_EXAMPLES = `
Examples:
  hotcell session get "$id" dist/app.js
  hotcell session get "$id" coverage ./report
  hotcell session get "$id" . ./whole-workspace

LOCAL is the name of REMOTE unless given; REMOTE is put into it if it is a folder with something in
it. All of it is here at the end, or nothing. What a session sends is not trusted: nothing is
written elsewhere, links that lead out of the folder and devices are left out, files are never made
with rights that are not yours to give.`;

interface GetOptions extends ConnectionOptions {
  readonly force?: true;
  readonly mostBytes?: number;
}

export function addGetCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('get')
    .description('copy a file or a folder of the workspace here')
    .argument('<session>', 'its id')
    .argument('<remote>', 'path below the workspace; . is all of it')
    .argument('[local]', 'where to')
    .option('--force', 'replace a file that is there')
    .addOption(
      new Option('--most-bytes <number>', "most that may come (default: the session's disk)").argParser(
        toWhole,
      ),
    )
    .addHelpText('after', GET_EXAMPLES)
    .action(async (sessionId: string, remote: string, local: string | undefined, options: GetOptions) => {
      const { terminal, outcome } = context;
      const client = await connect(options, context);
      using stop = listenForStop(terminal);
      const { force, mostBytes } = options;
      const wish = { sessionId, remote, local, force: force === true, mostBytes };
      try {
        const got = await getFiles(client, wish, { terminal, signal: stop.signal });
        sayLeftOut(got.leftOut, terminal);
        if (options.json === true) terminal.json({ ...got, leftOut: undefined, left_out: got.leftOut });
        else terminal.line(`got ${count(got.files, 'file')}, ${toSizeText(got.bytes)}, as ${got.local}`);
      } catch (error) {
        const exitCode = stop.exitCode();
        if (exitCode === undefined) throw error;
        outcome.exitCode = exitCode;
      }
    });
  addConnectionOptions(command);
}

const SYNC_EXAMPLES = `
Examples:
  hotcell session sync "$id" .
  hotcell session sync "$id" ./shop --exclude dist --exclude '.env'

Makes the workspace like the folder: only files that differ travel, and files that an earlier sync
brought and that are gone here go there, too. What commands made stays. Left out, wherever they
are: ${USUALLY_SKIPPED.join(', ')}, and links.`;

interface SyncOptions extends ConnectionOptions {
  readonly exclude?: readonly string[];
  readonly delete: boolean;
}

export function addSyncCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('sync')
    .description('make the workspace like a folder here')
    .argument('<session>', 'its id')
    .argument('<folder>', 'the folder here')
    .addOption(
      new Option('--exclude <name>', 'leave out files and folders of this name, repeatable').argParser(
        collect,
      ),
    )
    .option('--no-delete', 'remove nothing')
    .addHelpText('after', SYNC_EXAMPLES)
    .action(async (sessionId: string, folder: string, options: SyncOptions) => {
      const { terminal } = context;
      const client = await connect(options, context);
      let words = 'compares files';
      using slow = new SlowNote(terminal);
      slow.tell(() => words);
      const skipped = new Set([...USUALLY_SKIPPED, ...(options.exclude ?? [])]);
      const { files, leftOut } = await collectFiles(resolve(folder), skipped);
      const summary = await client.sync(sessionId, files, {
        delete: options.delete,
        onProgress: (done) => {
          words = `sent ${done.files} of ${done.of} files`;
        },
      });
      sayLeftOut(leftOut, terminal);
      if (options.json === true) terminal.json({ ...summary, left_out: leftOut });
      else
        terminal.line(`${summary.synced} written, ${summary.skipped} unchanged, ${summary.deleted} removed`);
    });
  addConnectionOptions(command);
}

const MOST_NAMES = 5;

function sayLeftOut(paths: readonly string[], terminal: Terminal): void {
  if (paths.length === 0) return;
  const names = paths.slice(0, MOST_NAMES).map(toPrintable).join(', ');
  const more = paths.length > MOST_NAMES ? ` and ${paths.length - MOST_NAMES} more` : '';
  terminal.note(`hotcell: left out, because they are no plain files: ${names}${more}`);
}
