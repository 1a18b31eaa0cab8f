import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Terminal } from '../terminal.ts';
import { AgentProgress } from './agent-progress.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function make(isTTY: boolean): { progress: AgentProgress; written: () => string[] } {
  const stderr = new PassThrough();
  const asTerminal = (stream: PassThrough) =>
    Object.assign(stream, { isTTY, columns: 60 }) as unknown as NodeJS.WriteStream;
  const terminal = new Terminal({ stdout: asTerminal(new PassThrough()), stderr: asTerminal(stderr) });
  const written = (): string[] => {
    const text = (stderr.read() as Buffer | null)?.toString() ?? '';
    return text
      .replaceAll('\r\u001b[2K', '\n')
      .split('\n')
      .filter((line) => line !== '');
  };
  return { progress: new AgentProgress(terminal), written };
}

test('[FL-17] on a terminal the time moves every second, whatever the agent does', () => {
  const { progress, written } = make(true);
  progress.show('asking the agent for a task graph');
  expect(written()).toEqual(['fleet: asking the agent for a task graph']);
  vi.advanceTimersByTime(3000);
  const lines = new Set(written());
  for (const seconds of [1, 2, 3])
    expect(lines).toContain(`fleet: ${seconds}s · asking the agent for a task graph`);
  progress.detail('turn 2,\n\u001b[2J Bash: npm test');
  expect(written()).toEqual(['fleet: 3s · turn 2, \\x1b[2J Bash: npm test']);
  progress.clear();
  progress.detail('too late');
  vi.advanceTimersByTime(5000);
  expect(written()).toEqual([]);
});

test('[FL-17] elsewhere what begins is a line, and how it goes one now and then', () => {
  const { progress, written } = make(false);
  progress.show('asking the agent');
  progress.show('the agent is asked in mode container');
  for (let turn = 1; turn <= 100; turn++) {
    progress.detail(`turn ${turn}`);
    vi.advanceTimersByTime(1000);
  }
  expect(written()).toEqual([
    'fleet: asking the agent',
    'fleet: the agent is asked in mode container',
    'fleet: 30s · turn 30',
    'fleet: 1m 00s · turn 60',
    'fleet: 1m 30s · turn 90',
  ]);
});
