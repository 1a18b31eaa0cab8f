import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { ProgressLine } from './progress-line.ts';
import { makeTerminalLog } from './terminal-log.ts';
import { Terminal } from './terminal.ts';

function make(tty: boolean): { progress: ProgressLine; terminal: Terminal; written: () => string } {
  const streams = { stdout: new PassThrough(), stderr: new PassThrough() };
  const asTerminal = (stream: PassThrough) =>
    Object.assign(stream, { isTTY: tty, columns: 20 }) as unknown as NodeJS.WriteStream;
  const terminal = new Terminal({ stdout: asTerminal(streams.stdout), stderr: asTerminal(streams.stderr) });
  return {
    progress: new ProgressLine(terminal),
    terminal,
    written: () => (streams.stderr.read() as Buffer | null)?.toString() ?? '',
  };
}

const CLEAR = '\r\u001b[2K';

describe('on a terminal', () => {
  test('one line changes, never longer than the terminal is wide, and goes at the end', () => {
    const { progress, written } = make(true);
    progress.show('short');
    progress.show('a line that is much longer than twenty');
    progress.clear();
    progress.clear();
    expect(written()).toBe(`${CLEAR}short${CLEAR}a line that is much${CLEAR}`);
  });

  test('whatever is written meanwhile stays above it', () => {
    const { progress, terminal, written } = make(true);
    progress.show('at work');
    makeTerminalLog('warn', terminal).warn({ worker: 1 }, 'file not copied');
    progress.show('at work, 2s');
    terminal.line('data');
    progress.clear();
    terminal.note('the end');
    expect(written()).toBe(
      `${CLEAR}at work${CLEAR}hotcell: warn: file not copied worker=1\nat work` +
        `${CLEAR}at work, 2s${CLEAR}at work, 2s${CLEAR}the end\n`,
    );
  });

  test('nothing is cleared that was not shown', () => {
    const { progress, written } = make(true);
    progress[Symbol.dispose]();
    expect(written()).toBe('');
  });
});

test('elsewhere every line stays', () => {
  const { progress, written } = make(false);
  progress.show('one');
  progress.show('a line that is much longer than twenty');
  progress.clear();
  expect(written()).toBe('one\na line that is much longer than twenty\n');
});
