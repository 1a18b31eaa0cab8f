import { expect, test } from 'vitest';
import { BuildLog } from './build-log.ts';

function write(...pieces: readonly string[]): { lines: string[]; last: readonly string[] } {
  const lines: string[] = [];
  const log = new BuildLog((line) => lines.push(line));
  for (const piece of pieces) log.write(piece);
  return { last: log.lastLines, lines };
}

test('pieces become lines, without the bookkeeping of the builder', () => {
  const { lines } = write(
    'Step 1/2 : FROM x',
    '\n',
    ' ---> 2e51dc68322d\n',
    'one\r\ntw',
    'o\n',
    '\n',
    'rest',
  );
  expect(lines).toEqual(['Step 1/2 : FROM x', 'one', 'two', 'rest']);
});

test('the last lines are those of the last step, its own line and what it printed at the end', () => {
  const printed = Array.from({ length: 20 }, (_, index) => `line ${index}\n`);
  const { last } = write('Step 1/2 : RUN a\nold\n', 'Step 2/2 : RUN b\n', ...printed);
  expect(last).toEqual([
    'Step 2/2 : RUN b',
    ...Array.from({ length: 8 }, (_, index) => `line ${index + 12}`),
  ]);
});

test('what programs print cannot steer the terminal', () => {
  expect(write('\u001b[2J\u001b]0;title\u0007red\u0008\n').lines).toEqual(['red']);
});
