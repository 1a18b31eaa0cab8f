import type { CellFile } from '../core/cell.ts';
import { HotcellError } from '../core/errors.ts';
import type { ExecRequest } from '../core/exec.ts';
import { relativePathProblem } from '../core/job.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { toTar } from '../lib/tar-archive.ts';
import { readOutcome } from './read-outcome.ts';
import { runToEnd, type Starter } from './run-to-end.ts';

export interface FileEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  readonly sizeBytes: number;
}

const MiB = 1024 * 1024;
const WORDS_KEPT = 1000;
const LISTING_KEPT = 16 * MiB;
const TIME_MS = 60_000;
const FILE_MODE = 0o644;

/** Only a plain file: another one might have no end, or nobody at its other one. */
const READ = '[ -f "./$1" ] || { echo "$1: not a file" >&2; exit 66; }; exec head -c "$2" -- "./$1"';
const LIST = String.raw`cd -P -- "./$1" && exec find . -mindepth 1 -maxdepth 1 -printf '%f\0%y\0%s\0'`;
const KINDS: Readonly<Record<string, FileEntry['kind']>> = { f: 'file', d: 'folder', l: 'link' };

/**
 * The files of a cell by programs in the cell, with the rights of its user. Throws FILE_REFUSED for what they could not do.
 * SECURITY: whatever links there are lead to places of the cell; nothing outside it ever resolves a path of it. Paths reach
 * the scripts as arguments, never as text of theirs.
 */
export class CellFiles {
  readonly #cell: Starter;

  constructor(cell: Starter) {
    this.#cell = cell;
  }

  /** As an archive, because one program then writes many. */
  async write(files: readonly CellFile[]): Promise<void> {
    for (const { path } of files) requireRelative(path);
    const entries = files.map(({ path, content, mode }) => ({ path, content, mode: mode ?? FILE_MODE }));
    await this.#run(['tar', '-x', '--no-same-owner', '-f', '-'], toTar(entries), 0);
  }

  /** Refuses a file of more than `limitBytes`. */
  async read(path: string, limitBytes: number): Promise<Uint8Array> {
    requireRelative(path);
    const content = await this.#run(
      ['sh', '-c', READ, 'sh', path, String(limitBytes + 1)],
      EMPTY,
      limitBytes,
    );
    if (!content.truncated) return content.bytes();
    throw refuse(`${path}: has more than ${limitBytes} bytes`);
  }

  /** `.` is the workdir. */
  async list(path: string): Promise<FileEntry[]> {
    if (path !== '.') requireRelative(path);
    const listing = await this.#run(['sh', '-c', LIST, 'sh', path], EMPTY, LISTING_KEPT);
    if (listing.truncated) throw refuse(`${path}: has too many entries`);
    return parseListing(Buffer.from(listing.bytes()).toString());
  }

  async #run(argv: ExecRequest['argv'], input: Uint8Array, keptBytes: number): Promise<CappedBytes> {
    const [stdout, stderr] = [new CappedBytes(keptBytes), new CappedBytes(WORDS_KEPT)];
    const { outcome } = await runToEnd(
      this.#cell,
      { argv, env: {} },
      { input, timeMs: TIME_MS, stdout, stderr },
    );
    if (readOutcome(outcome).ok) return stdout;
    throw refuse(stderr.text().trim() || `${argv[0]} ended with ${outcome.kind}`);
  }
}

const EMPTY = new Uint8Array();

function parseListing(text: string): FileEntry[] {
  const words = text.split('\0');
  const entries: FileEntry[] = [];
  for (let at = 0; at + 2 < words.length; at += 3) {
    const [name = '', kind = '', size = ''] = words.slice(at, at + 3);
    entries.push({ name, kind: KINDS[kind] ?? 'other', sizeBytes: Number(size) });
  }
  return entries.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function requireRelative(path: string): void {
  const problem = relativePathProblem(path);
  if (problem !== undefined) throw refuse(`${JSON.stringify(path)}: ${problem}`);
}

function refuse(problem: string): HotcellError {
  return new HotcellError('FILE_REFUSED', problem, { field: 'path' });
}
