import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { SyncReply } from '../wire/session-files.ts';
import { RunnerError } from './runner-error.ts';
import { WorkspaceSync, type IDEFile, type SendSync } from './workspace-sync.ts';

type Body = Parameters<SendSync>[0];
const hashOf = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

/** Takes manifests and contents as the real one does: nothing goes before all is there to take its place. */
class Workspace {
  readonly files = new Map<string, string>();
  readonly bodies: Body[] = [];
  limitBytes = Infinity;

  readonly send: SendSync = (body) => {
    this.bodies.push(body);
    if (JSON.stringify(body).length > this.limitBytes) return Promise.reject(refusal('BODY_TOO_LARGE'));
    const named = new Set(body.files.map(({ path }) => path));
    const dropped = body.delete ? [...this.files.keys()].filter((path) => !named.has(path)) : [];
    const inTheWay = (path: string): boolean =>
      [...this.files.keys()].some((other) => !dropped.includes(other) && path.startsWith(`${other}/`));
    if (body.files.some(({ path }) => inTheWay(path))) return Promise.reject(refusal('FILE_REFUSED'));
    const changed = body.files.filter(({ path, hash }) => this.files.get(path) !== hash);
    const needed = changed.filter((entry) => !('content' in entry));
    const reply: SyncReply = {
      synced: 0,
      skipped: body.files.length - changed.length,
      deleted: 0,
      needed: needed.map(({ path }) => path),
    };
    for (const entry of changed) {
      if (!('content' in entry)) continue;
      expect(hashOf(Buffer.from(entry.content, entry.encoding))).toBe(entry.hash);
      this.files.set(entry.path, entry.hash);
      reply.synced += 1;
    }
    if (needed.length === 0) for (const path of dropped) reply.deleted += this.files.delete(path) ? 1 : 0;
    return Promise.resolve(reply);
  };
}

function refusal(code: string): RunnerError {
  return new RunnerError(code, 'no', { hint: 'none' });
}

const sync = (workspace: Workspace, files: readonly IDEFile[], options = {}, requestBytes = 1_000_000) =>
  new WorkspaceSync(files, options, { send: workspace.send, requestBytes }).run();

const FILES: IDEFile[] = [
  { path: 'a.txt', content: 'hello €\n' },
  { path: 'b.bin', content: Uint8Array.of(0, 255, 254), mode: 0o755 },
  { path: 'deep/c', content: () => Promise.resolve(Buffer.from('later')) },
];

test('[RS-09, RS-20] first the hashes, then what is needed; unchanged files cost one round trip', async () => {
  const workspace = new Workspace();
  expect(await sync(workspace, FILES)).toEqual({ synced: 3, skipped: 0, deleted: 0 });
  expect(workspace.bodies).toHaveLength(2);
  expect(workspace.bodies[0]?.files.some((entry) => 'content' in entry)).toBe(false);
  expect(workspace.files.get('deep/c')).toBe(hashOf('later'));
  expect(await sync(workspace, FILES)).toEqual({ synced: 0, skipped: 3, deleted: 0 });
  expect(workspace.bodies).toHaveLength(3);
  const [first] = FILES;
  expect(await sync(workspace, first === undefined ? [] : [first, { path: 'new', content: '' }])).toEqual({
    synced: 1,
    skipped: 1,
    deleted: 2,
  });
  expect([...workspace.files.keys()]).toEqual(['a.txt', 'new']);
});

test('[RS-09, RS-20] nothing is removed when the caller says so, and known hashes are not computed', async () => {
  const workspace = new Workspace();
  await sync(workspace, FILES);
  const never = (): Promise<Uint8Array> => Promise.reject(new Error('was read'));
  const known = { path: 'a.txt', content: never, hash: hashOf('hello €\n') };
  expect(await sync(workspace, [known], { delete: false })).toEqual({ synced: 0, skipped: 1, deleted: 0 });
  expect(workspace.files.size).toBe(3);
});

test('[RS-09, RS-20] contents travel in requests of bounded size, removals with the last', async () => {
  const workspace = new Workspace();
  await sync(workspace, [{ path: 'old', content: 'x' }]);
  const files = Array.from({ length: 40 }, (_, index) => ({
    path: `f${index}`,
    content: `${index}`.repeat(1000),
  }));
  const seen: number[] = [];
  const before = workspace.bodies.length;
  const onProgress = ({ files: count }: { files: number }): void => void seen.push(count);
  expect(await sync(workspace, files, { onProgress }, 20_000)).toEqual({
    synced: 40,
    skipped: 0,
    deleted: 1,
  });
  const bodies = workspace.bodies.slice(before);
  for (const body of bodies.slice(1)) expect(JSON.stringify(body).length).toBeLessThan(20_000);
  expect(bodies.map((body) => body.delete)).toEqual([true, ...bodies.slice(2).map(() => false), true]);
  expect(seen).toEqual(seen.toSorted((one, other) => one - other));
  expect(seen.length).toBeGreaterThan(2);
});

test.each([5_000, 12_000, 60_000])(
  '[RS-09, RS-20] a server that takes at most %i bytes gets all the same',
  async (limit) => {
    const workspace = new Workspace();
    workspace.limitBytes = limit;
    const files = Array.from({ length: 30 }, (_, index) => ({
      path: `f${index}`,
      content: `${index}`.repeat(1000),
    }));
    expect(await sync(workspace, files)).toEqual({ synced: 30, skipped: 0, deleted: 0 });
    expect(workspace.files.size).toBe(30);
  },
);

test('[RS-09, RS-20] a file that is too large for the server is an error, not an endless loop', async () => {
  const workspace = new Workspace();
  workspace.limitBytes = 5000;
  await expect(sync(workspace, [{ path: 'big', content: 'x'.repeat(10_000) }])).rejects.toMatchObject({
    code: 'BODY_TOO_LARGE',
  });
});

test('[RS-09, RS-20] a file becomes a folder, also when not everything fits into one request', async () => {
  const workspace = new Workspace();
  await sync(workspace, [{ path: 'x', content: 'a file' }]);
  const files = [
    { path: 'x/inside', content: 'now below' },
    ...Array.from({ length: 20 }, (_, index) => ({ path: `f${index}`, content: `${index}`.repeat(1000) })),
  ];
  // The model refuses manifests that go through a file only when nothing removes it.
  expect(await sync(workspace, files, {}, 8000)).toEqual({ synced: 21, skipped: 0, deleted: 1 });
  expect(workspace.files.has('x/inside')).toBe(true);
});

test('[RS-20] files that change meanwhile are not called synced', async () => {
  const needy: SendSync = () => Promise.resolve({ synced: 0, skipped: 0, deleted: 0, needed: ['a.txt'] });
  const failing = new WorkspaceSync(FILES, {}, { send: needy, requestBytes: 1_000_000 }).run();
  await expect(failing).rejects.toMatchObject({ code: 'SYNC_DISTURBED' });
  const lying: SendSync = () =>
    Promise.resolve({ synced: 0, skipped: 0, deleted: 0, needed: ['/etc/passwd'] });
  const asked = new WorkspaceSync(FILES, {}, { send: lying, requestBytes: 1_000_000 }).run();
  await expect(asked).rejects.toMatchObject({ code: 'BAD_REPLY' });
});
