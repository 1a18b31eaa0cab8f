import * as z from 'zod';
import { ENCODING_PROBLEM, Encoding, PlainText, RelativePath, Text, fitsEncoding } from './text.ts';

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hex');
const Mode = z
  .union([z.int().min(0).max(0o777), z.string().regex(/^0?[0-7]{3}$/, 'must be an octal mode such as "755"')])
  .describe('permission bits; a number, or octal digits as text');

const WorkspaceFile = z
  .strictObject({
    path: RelativePath.describe('below the workspace'),
    content: Text,
    encoding: Encoding.default('utf8'),
    mode: Mode.optional(),
  })
  .refine(fitsEncoding, ENCODING_PROBLEM);

/** Body of `POST …/upload`: all of it or nothing. */
export const UploadRequest = z.strictObject({ files: z.array(WorkspaceFile).max(10_000) });
export type UploadRequest = z.infer<typeof UploadRequest>;
export const UploadReply = z.object({ synced: z.int() });

const SyncFile = z
  .strictObject({
    path: RelativePath,
    hash: Sha256.optional().describe('of the content'),
    content: Text.optional().describe('left out in a manifest'),
    encoding: Encoding.default('utf8'),
    mode: Mode.optional(),
  })
  .refine(({ content, hash }) => content !== undefined || hash !== undefined, {
    path: ['hash'],
    message: 'is needed where there is no content',
  })
  .refine(
    ({ content, encoding }) => content === undefined || fitsEncoding({ content, encoding }),
    ENCODING_PROBLEM,
  );

/**
 * Body of `POST …/sync`. A manifest names every file by its hash; the reply says which ones are needed. Then the same
 * again with the content of those. Files with content are written if they differ.
 */
export const SyncRequest = z.strictObject({
  files: z.array(SyncFile).max(100_000),
  delete: z
    .boolean()
    .default(true)
    .describe('remove files that an earlier sync or upload brought and this one does not name'),
});
export type SyncRequest = z.infer<typeof SyncRequest>;

export const SyncReply = z.object({
  synced: z.int().describe('files written'),
  skipped: z.int().describe('files that were there already'),
  deleted: z.int(),
  needed: z.array(z.string()).describe('paths whose content has to be sent'),
});
export type SyncReply = z.infer<typeof SyncReply>;

const FileChange = z.object({
  path: z.string(),
  change: z.enum(['added', 'modified', 'deleted']),
  size: z.int(),
  mode: z.int(),
});

/** Answer of `GET …/changes?since=`. */
export const ChangesReply = z.object({
  cursor: z.string().describe('for the next since='),
  changes: z.array(FileChange),
});
export type ChangesReply = z.infer<typeof ChangesReply>;

const ENTRY_KINDS = ['file', 'folder', 'link', 'other'] as const;

/** Answer of `GET …/fs?path=`: a file with its content, or a folder with its entries. */
export const FsReply = z.union([
  z.object({
    kind: z.literal('file'),
    path: z.string(),
    content: z.string(),
    encoding: Encoding,
    size: z.int(),
    mode: z.int(),
  }),
  z.object({
    kind: z.literal('folder'),
    path: z.string(),
    entries: z.array(z.object({ name: z.string(), kind: z.enum(ENTRY_KINDS), size: z.int(), mode: z.int() })),
  }),
]);
export type FsReply = z.infer<typeof FsReply>;

/** Body of `POST …/apply_patch`: a unified diff, all of it or nothing. */
export const ApplyPatchRequest = z.strictObject({ diff: PlainText.min(1) });
export const ApplyPatchReply = z.object({
  success: z.literal(true),
  results: z.array(z.object({ path: z.string(), status: z.enum(['applied', 'created', 'deleted']) })),
});
export type ApplyPatchReply = z.infer<typeof ApplyPatchReply>;
