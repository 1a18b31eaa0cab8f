import * as z from 'zod';
import { HotcellError } from '../core/errors.ts';
import { storedJson } from '../lib/stored-json.ts';
import type { FileState } from './file-state.ts';
import type { FileChange } from './files.ts';
import type { FilesGuest } from './files-guest.ts';
import { GuestRefusal } from './guest-refusal.ts';
import { receiveFolders } from './look.ts';

/** Folders full of what tools make and can make again; changes in them are not told. */
export const IGNORED_FOLDERS = [
  '.cache',
  '.git',
  '.gradle',
  '.mypy_cache',
  '.npm',
  '.parcel-cache',
  '.pytest_cache',
  '.ruff_cache',
  '.tox',
  '.turbo',
  '.venv',
  '__pycache__',
  'node_modules',
] as const;

const MOST_ENTRIES = 200_000;

type SeenFile = Pick<FileState, 'stamp' | 'size' | 'mode'>;

const Stored = z.object({
  version: z.literal(1),
  files: z.array(z.tuple([z.string(), z.string(), z.int(), z.int()])),
});

/** Everything in a workspace that is no folder, at one moment. Two of them show what has changed between. */
export class Snapshot {
  readonly files: ReadonlyMap<string, SeenFile>;

  constructor(files: ReadonlyMap<string, SeenFile>) {
    this.files = files;
  }

  /** Undefined for what cannot be read. */
  static read(text: string): Snapshot | undefined {
    const { data } = storedJson(Stored).safeParse(text);
    if (data === undefined) return undefined;
    return new Snapshot(
      new Map(
        data.files.map(([path, stamp, size, mode]) => [
          path,
          { stamp: Buffer.from(stamp, 'base64').toString('latin1'), size, mode },
        ]),
      ),
    );
  }

  toJSON(): z.infer<typeof Stored> {
    const files = [...this.files].map(([path, { stamp, size, mode }]): [string, string, number, number] => [
      path,
      Buffer.from(stamp, 'latin1').toString('base64'),
      size,
      mode,
    ]);
    return { version: 1, files };
  }
}

export async function takeSnapshot(guest: FilesGuest): Promise<Snapshot> {
  const limit = Buffer.alloc(4);
  limit.writeUInt32BE(MOST_ENTRIES);
  const files = new Map<string, SeenFile>();
  try {
    await guest.run(async (turn) => {
      turn.send('W', Buffer.concat([limit, Buffer.from(IGNORED_FOLDERS.join('\0'))]));
      for await (const { folder, entries } of receiveFolders(turn)) {
        const prefix = folder.length === 0 ? '' : `${folder.toString()}/`;
        for (const { name, state } of entries) {
          const { kind, stamp, size, mode } = state;
          if (kind !== 'folder') files.set(prefix + name.toString(), { stamp, size, mode });
        }
        if (files.size > MOST_ENTRIES) throw turn.nonsense();
      }
    });
  } catch (error) {
    if (!(error instanceof GuestRefusal)) throw error;
    throw error.reason === 'too-much'
      ? new HotcellError('FILE_TOO_LARGE', `the workspace has more than ${MOST_ENTRIES} files`)
      : new HotcellError('FILE_REFUSED', 'the workspace is no folder any more');
  }
  return new Snapshot(files);
}

/** In the order of the paths. */
export function diffSnapshots(before: Snapshot, after: Snapshot): FileChange[] {
  const changes: FileChange[] = [];
  for (const [path, { stamp, size, mode }] of after.files) {
    const old = before.files.get(path);
    if (old?.stamp === stamp) continue;
    changes.push({ path, change: old === undefined ? 'added' : 'modified', size, mode });
  }
  for (const [path, { size, mode }] of before.files) {
    if (!after.files.has(path)) changes.push({ path, change: 'deleted', size, mode });
  }
  return changes.toSorted((one, other) => (one.path < other.path ? -1 : 1));
}
