import { describe, expect, test } from 'vitest';
import { applyHunks } from './apply-hunks.ts';
import { parsePatch } from './patch.ts';

const diff = (...lines: string[]): string => `${lines.join('\n')}\n`;
const HEAD = ['--- a/f', '+++ b/f'] as const;

function apply(text: string, ...lines: string[]): string {
  const [patch] = parsePatch(diff(...HEAD, ...lines));
  if (patch === undefined) throw new Error('no patch');
  return applyHunks(patch, text);
}

const refused = (message: RegExp) => ({
  code: 'PATCH_REFUSED',
  message: expect.stringMatching(message) as string,
});

function problemOf(text: string): unknown {
  try {
    return parsePatch(text);
  } catch (error) {
    return error;
  }
}

describe('parsePatch', () => {
  test.each([
    ['nothing', '', /no file/],
    ['prose', 'please change line 3\n', /no file/],
    ['a hunk without a file', diff('@@ -1 +1 @@', '-a', '+b'), /before the first file/],
    ['a header without numbers', diff(...HEAD, '@@ a @@', '-a', '+b'), /hunk 1 has a broken header/],
    ['too few lines', diff(...HEAD, '@@ -1,3 +1,3 @@', ' a', '-b', '+c'), /hunk 1 has not the lines/],
    ['too many lines', diff(...HEAD, '@@ -1 +1 @@', '-a', '+b', '+c'), /hunk 1 has more lines/],
    ['too many old lines', diff(...HEAD, '@@ -1 +1,2 @@', '-a', '-b', '+c'), /hunk 1 has not the lines/],
    ['another line between', diff(...HEAD, '@@ -1,2 +1,2 @@', ' a', 'b'), /hunk 1 has not the lines/],
    ['a broken second hunk', diff(...HEAD, '@@ -1 +1 @@', '-a', '+b', '@@ -9,2 +9 @@', ' a'), /hunk 2/],
    [
      'a rename',
      diff('diff --git a/f b/g', 'similarity index 90%', 'rename from f', 'rename to g'),
      /renames/,
    ],
    ['a copy', diff('diff --git a/f b/g', 'copy from f', 'copy to g'), /renames and copies/],
    ['a rename in the names', diff('--- a/f', '+++ b/g', '@@ -1 +1 @@', '-a', '+b'), /not the same file/],
    [
      'a binary file',
      diff('diff --git a/f b/f', 'index 1..2', 'Binary files a/f and b/f differ'),
      /f: binary/,
    ],
    ['a binary patch', diff('diff --git a/f b/f', 'GIT binary patch', 'literal 3'), /f: binary/],
    [
      'a link',
      diff(
        'diff --git a/f b/f',
        'new file mode 120000',
        '--- /dev/null',
        '+++ b/f',
        '@@ -0,0 +1 @@',
        '+/etc',
      ),
      /links/,
    ],
    ['a file twice', diff(...HEAD, '@@ -1 +1 @@', '-a', '+b', ...HEAD, '@@ -1 +1 @@', '-a', '+b'), /twice/],
    ['a file without a change', diff(...HEAD), /nothing is changed/],
    ['no file on either side', diff('--- /dev/null', '+++ /dev/null', '@@ -1 +1 @@', '-a', '+b'), /no name/],
  ])('[RS-08] refuses %s and says where', (_, text, message) => {
    expect(problemOf(text)).toMatchObject(refused(message));
  });

  test('[RS-08] reads names with times, quotes and line ends of other systems', () => {
    const names = [
      ['--- a/f.txt\t2024-01-01 00:00:00', '+++ b/f.txt\t2024-01-02 00:00:00', 'f.txt'],
      ['--- f.txt', '+++ f.txt', 'f.txt'],
      ['--- "a/gr\\303\\274n \\"x\\".txt"', '+++ "b/gr\\303\\274n \\"x\\".txt"', 'grün "x".txt'],
      ['--- a/with space', '+++ b/with space', 'with space'],
      ['--- a/cr\r', '+++ b/cr\r', 'cr'],
    ] as const;
    for (const [old, next, path] of names) {
      expect(parsePatch(diff(old, next, '@@ -1 +1 @@', '-a', '+b'))[0]).toMatchObject({
        path,
        action: 'modify',
      });
    }
  });

  test('[RS-08] passes over the text around, as in a mailed patch', () => {
    const mailed = diff(
      'Subject: x',
      '',
      ' f | 2 +-',
      '',
      ...HEAD,
      '@@ -1 +1 @@ context',
      '-a',
      '+b',
      '-- ',
      '2.40.0',
      '',
    );
    expect(parsePatch(mailed)).toMatchObject([{ path: 'f', hunks: [{ oldStart: 1 }] }]);
  });

  test('[RS-08] knows changes of the mode alone, and empty files', () => {
    expect(parsePatch(diff('diff --git a/x y b/x y', 'old mode 100644', 'new mode 100755'))).toEqual([
      { path: 'x y', action: 'modify', mode: 0o755, hunks: [] },
    ]);
    expect(parsePatch(diff('diff --git a/e b/e', 'new file mode 100644', 'index 0..0'))).toMatchObject([
      { path: 'e', action: 'create' },
    ]);
    expect(parsePatch(diff('diff --git a/e b/e', 'deleted file mode 100644', 'index 0..0'))).toMatchObject([
      { path: 'e', action: 'delete' },
    ]);
  });
});

describe('applyHunks', () => {
  test('[RS-08] checks every line, and the line end of the last one', () => {
    expect(apply('a\nb\nc\n', '@@ -1,3 +1,3 @@', ' a', '-b', '+B', ' c')).toBe('a\nB\nc\n');
    expect(() => apply('a\nb\nX\n', '@@ -1,3 +1,3 @@', ' a', '-b', '+B', ' c')).toThrow(
      /hunk 1 does not fit/,
    );
    expect(() => apply('a \nb\n', '@@ -1,2 +1,2 @@', ' a', '-b', '+B')).toThrow(/hunk 1/);
    expect(() => apply('a', '@@ -1 +1 @@', '-a', '+b')).toThrow(/hunk 1/);
    expect(apply('a', '@@ -1 +1 @@', '-a', '\\ No newline at end of file', '+b')).toBe('b\n');
    expect(apply('a\n', '@@ -1 +1 @@', '-a', '+b', '\\ No newline at end of file')).toBe('b');
    expect(apply('a\r\nb\r\n', '@@ -1,2 +1,2 @@', ' a\r', '-b\r', '+c\r')).toBe('a\r\nc\r\n');
    expect(apply('a\n\nb\n', '@@ -1,3 +1,3 @@', ' a', '', '-b', '+c')).toBe('a\n\nc\n');
  });

  test('[RS-08] looks for the only other place, and takes none of several', () => {
    const hunk = ['@@ -1,2 +1,2 @@', ' x', '-y', '+z'] as const;
    expect(apply('0\n0\nx\ny\n', ...hunk)).toBe('0\n0\nx\nz\n');
    expect(() => apply('0\nx\ny\nx\ny\n', ...hunk)).toThrow(/more than once/);
    // At its own place it is taken, whatever there is elsewhere.
    expect(apply('x\ny\nx\ny\n', ...hunk)).toBe('x\nz\nx\ny\n');
    expect(() => apply('0\nx\nx\n', ...hunk)).toThrow(/does not fit/);
    // Overlapping places count, too.
    expect(() => apply('0\na\na\na\n', '@@ -1,2 +1 @@', '-a', ' a')).toThrow(/more than once/);
  });

  test('[RS-08] later hunks move with earlier ones, and never before them', () => {
    const text = Array.from({ length: 20 }, (_, at) => `${at}\n`).join('');
    const hunks = ['@@ -2 +2 @@', '-1', '+one', '@@ -11 +11 @@', '-10', '+ten'] as const;
    expect(apply(`head\n${text}`, ...hunks)).toBe(
      `head\n${text}`.replace('\n1\n', '\none\n').replace('\n10\n', '\nten\n'),
    );
    expect(() => apply('a\nb\n', '@@ -2 +2 @@', '-b', '+B', '@@ -1 +1 @@', '-a', '+A')).toThrow(/hunk 2/);
  });

  test('[RS-08] inserts without context only where the diff says', () => {
    expect(apply('a\nb\n', '@@ -1,0 +2 @@', '+x')).toBe('a\nx\nb\n');
    expect(apply('a\n', '@@ -0,0 +1 @@', '+x')).toBe('x\na\n');
    expect(() => apply('a\n', '@@ -5,0 +6 @@', '+x')).toThrow(/hunk 1/);
    expect(() => apply('a', '@@ -1,0 +2 @@', '+x')).toThrow(/line end/);
  });

  test('[RS-08] the work has a bound, whatever the lines are', () => {
    const text = 'a\n'.repeat(200_000);
    const hunks = Array.from({ length: 400 }, (_, at) => [
      `@@ -${at + 1},2 +${at + 1},2 @@`,
      ' a',
      '-b',
      '+c',
    ]).flat();
    expect(() => apply(text, ...hunks)).toThrow(/hunk 1 does not fit/);
    const own = Array.from({ length: 200_000 }, (_, at) => `${at}\n`).join('');
    const away = Array.from({ length: 400 }, (_, at) => [
      `@@ -${at * 2 + 900 - at * 4} +1 @@`,
      `-${1000 + at}`,
      '+c',
    ]).flat();
    expect(() => apply(own, ...away)).toThrow(/too many hunks/);
  });
});
