import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { HotcellError } from '../../src/core/errors.ts';
import { file, withWorkspace } from './harness.ts';

/** The same numbers in every run. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const WORDS = ['', 'a', 'b', '}', '  return;', 'grüße', '-- x', '+++ y', '@@ -1 +1 @@', '\\ z', 'cr\r'];

function randomText(random: (below: number) => number, lines: number): string {
  const text = Array.from({ length: lines }, () => WORDS[random(WORDS.length)]).join('\n');
  return random(3) === 0 ? text : `${text}\n`;
}

function edit(random: (below: number) => number, text: string): string {
  const lines = text.split('\n');
  for (let count = random(5); count >= 0; count--) {
    const words = Array.from({ length: random(4) }, () => WORDS[random(WORDS.length)] ?? '');
    lines.splice(random(lines.length + 1), random(4), ...words);
  }
  return lines.join('\n');
}

type Tree = Readonly<Record<string, string>>;

/** What `git diff` says between two trees. */
function gitDiff(before: Tree, after: Tree, ...options: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-diff-'));
  try {
    for (const [name, tree] of [
      ['a', before],
      ['b', after],
    ] as const) {
      mkdirSync(join(folder, name));
      for (const [path, content] of Object.entries(tree)) {
        mkdirSync(dirname(join(folder, name, path)), { recursive: true });
        writeFileSync(join(folder, name, path), content);
      }
    }
    const args = ['diff', '--no-index', '--no-prefix', '--no-renames', '--text', ...options, 'a', 'b'];
    const { stdout, stderr } = spawnSync('git', args, { cwd: folder, encoding: 'utf8' });
    expect(stderr).toBe('');
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('apply_patch', () => {
  test('[RS-08] makes of one tree the other, for whatever git finds between them', () =>
    withWorkspace(async (box) => {
      const random = makeRandom(4);
      for (let round = 0; round < 60; round++) {
        const before: Record<string, string> = {};
        const after: Record<string, string> = {};
        for (const name of ['one', 'dir/two', 'dir/ü three']) {
          const path = `r${round}/${name}`;
          const text = randomText(random, random(40));
          if (random(6) > 0) before[path] = text;
          if (random(6) > 0) after[path] = random(5) === 0 ? randomText(random, 10) : edit(random, text);
        }
        const diff = gitDiff(before, after, `-U${random(4)}`);
        await box.workspace.write(Object.entries(before).map(([path, text]) => file(path, text)));
        if (diff === '') continue;
        await box.workspace.applyPatch(diff);
        const files = box.tree().filter((path) => path.startsWith(`r${round}/`) && !path.endsWith('/'));
        expect(files.map((path) => [path, readFileSync(join(box.root, path), 'utf8')])).toEqual(
          Object.entries(after).toSorted(([one], [other]) => (one < other ? -1 : 1)),
        );
      }
    }));

  test('[RS-08] of a file that has moved on lands at the right place or is refused', () =>
    withWorkspace(async ({ workspace, root }) => {
      const random = makeRandom(7);
      let applied = 0;
      for (let round = 0; round < 80; round++) {
        const text = randomText(random, 10 + random(20));
        const changed = edit(random, text);
        const diff = gitDiff({ f: text }, { f: changed });
        if (diff === '') continue;
        const head = Array.from({ length: 1 + random(5) }, (_, at) => `head ${round} ${at}\n`).join('');
        await workspace.write([file('f', head + text)]);
        const result = await workspace.applyPatch(diff).then(
          () => 'applied' as const,
          (error: unknown) =>
            error instanceof HotcellError && error.code === 'PATCH_REFUSED' ? 'refused' : 'broken',
        );
        expect(result).not.toBe('broken');
        if (result === 'applied') applied++;
        expect(readFileSync(join(root, 'f'), 'utf8')).toBe(head + (result === 'applied' ? changed : text));
      }
      expect(applied).toBeGreaterThan(10);
    }));

  test('[RS-08] reports each file, keeps modes, and makes folders', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('edit', 'one\ntwo\n', 0o755), file('drop', 'x\n')]);
      const diff = [
        'diff --git a/edit b/edit',
        'index 1..2 100755',
        '--- a/edit',
        '+++ b/edit',
        '@@ -1,2 +1,2 @@',
        ' one',
        '-two',
        '+zwei',
        'diff --git a/drop b/drop',
        'deleted file mode 100644',
        '--- a/drop',
        '+++ /dev/null',
        '@@ -1 +0,0 @@',
        '-x',
        'diff --git a/new/run.sh b/new/run.sh',
        'new file mode 100755',
        '--- /dev/null',
        '+++ b/new/run.sh',
        '@@ -0,0 +1 @@',
        '+#!/bin/sh',
        '\\ No newline at end of file',
        'diff --git a/new/empty b/new/empty',
        'new file mode 100644',
        'index 0000000..e69de29',
        '',
      ].join('\n');
      expect(await box.workspace.applyPatch(diff)).toEqual([
        { path: 'edit', status: 'applied' },
        { path: 'drop', status: 'deleted' },
        { path: 'new/run.sh', status: 'created' },
        { path: 'new/empty', status: 'created' },
      ]);
      expect(box.tree()).toEqual(['edit', 'new/', 'new/empty', 'new/run.sh']);
      expect([box.modeOf('edit'), box.modeOf('new/run.sh'), box.modeOf('new/empty')]).toEqual([
        0o755, 0o755, 0o644,
      ]);
      expect(readFileSync(join(box.root, 'new/run.sh'), 'utf8')).toBe('#!/bin/sh');
      expect(readFileSync(join(box.root, 'edit'), 'utf8')).toBe('one\nzwei\n');
    }));

  const edits = (path: string): string => `--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-old\n+new\n`;

  test.each([
    ['a hunk that does not fit', '--- a/second\n+++ b/second\n@@ -1 +1 @@\n-other\n+new\n', /second: hunk 1/],
    ['a file that is not there', edits('none'), /none is to be changed/],
    ['a new file that is there', '--- /dev/null\n+++ b/second\n@@ -0,0 +1 @@\n+x\n', /second is to be made/],
    ['a deletion of something else', '--- a/second\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n', /second: hunk 1/],
  ])('[RS-08] %s changes nothing of the whole diff', (_, diff, message) =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('first', 'old\n'), file('second', 'old\n')]);
      await expect(box.workspace.applyPatch(edits('first') + diff)).rejects.toMatchObject({
        code: 'PATCH_REFUSED',
        message: expect.stringMatching(message) as string,
      });
      expect(readFileSync(join(box.root, 'first'), 'utf8')).toBe('old\n');
      expect(box.tree()).toEqual(['first', 'second']);
    }),
  );

  test.each(['../out', '/etc/passwd', 'a/../../x', 'link/x', 'link'])(
    '[RS-08] a diff of %s is refused',
    (path) =>
      withWorkspace(async (box) => {
        mkdirSync(box.outside, { mode: 0o777 });
        await box.sh('ln -s ../outside link');
        const diff = `--- /dev/null\n+++ ${path}\n@@ -0,0 +1 @@\n+x\n`;
        await expect(box.workspace.applyPatch(diff)).rejects.toMatchObject({ code: 'FILE_REFUSED' });
        expect(box.tree()).toEqual(['link']);
      }),
  );

  test('[RS-08] a file that changes between the look and the change is noticed', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('busy', 'old\nrest\n'), file('other', 'old\n')]);
      const diff = `${edits('other')}--- a/busy\n+++ b/busy\n@@ -1,2 +1,2 @@\n-old\n+new\n rest\n`;
      let refused = 0;
      for (let round = 0; round < 30; round++) {
        writeFileSync(join(box.root, 'busy'), 'old\nrest\n');
        writeFileSync(join(box.root, 'other'), 'old\n');
        const patching = box.workspace.applyPatch(diff).then(
          () => 'applied',
          (error: unknown) => error,
        );
        // Comes after the read and before the change, or not, as it happens.
        await box.workspace.read('other', 10);
        writeFileSync(join(box.root, 'busy'), 'old\nREST\n');
        const result = await patching;
        if (result === 'applied') continue;
        expect(result).toMatchObject({ code: 'PATCH_REFUSED' });
        expect(readFileSync(join(box.root, 'busy'), 'utf8')).toBe('old\nREST\n');
        expect(readFileSync(join(box.root, 'other'), 'utf8')).toBe('old\n');
        refused++;
      }
      expect(refused).toBeGreaterThan(0);
    }));
});
