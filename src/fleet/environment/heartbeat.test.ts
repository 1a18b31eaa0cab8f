import { describe, expect, test } from 'vitest';
import { EventQueue } from '../../lib/event-queue.ts';
import type { Exec, ExecEvent } from '../../core/exec.ts';
import { watchHeartbeat } from './heartbeat.ts';

const NO_USAGE = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const BEAT: ExecEvent = { type: 'stdout', bytes: Buffer.from('beat\n') };

class Program implements Exec {
  readonly id = 1;
  readonly ended = Promise.resolve();
  readonly queue = new EventQueue<ExecEvent>();
  readonly events: AsyncIterable<ExecEvent> = this.queue;

  exit(): void {
    this.queue.push({ type: 'exit', outcome: { kind: 'exited', code: 0 }, usage: NO_USAGE });
    this.queue.end();
  }

  write(): void {}

  closeStdin(): void {
    this.exit();
  }

  kill(): Promise<void> {
    return Promise.resolve();
  }

  terminate(): void {}

  resize(): void {}

  forget(): void {}

  usage(): Promise<typeof NO_USAGE> {
    return Promise.resolve(NO_USAGE);
  }
}

function start(): {
  program: Program;
  beats: number[];
  clock: { now: number };
  watch: ReturnType<typeof watchHeartbeat>;
} {
  const [program, beats, clock] = [new Program(), new Array<number>(), { now: 0 }];
  const watch = watchHeartbeat(
    program,
    () => void beats.push(clock.now),
    () => clock.now,
  );
  return { program, beats, clock, watch };
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 10; turns++) await new Promise(setImmediate);
}

describe('signs of life of a cell', () => {
  test('[FL-12] are told of as they come, and so is their end', async () => {
    const { program, beats, clock, watch } = start();
    for (const now of [0, 15_000, 30_000]) {
      clock.now = now;
      program.queue.push(BEAT);
      await settle();
    }
    expect(beats).toEqual([0, 15_000, 30_000]);
    program.closeStdin();
    expect(await watch).toBe('exited');
  });

  test('[FL-12] are not told of more often than anybody can want, and complaints are none', async () => {
    const { program, beats, clock } = start();
    program.queue.push({ type: 'stderr', bytes: Buffer.from('x') });
    for (let now = 0; now < 1000; now++) {
      clock.now = now;
      program.queue.push(BEAT);
      await new Promise(setImmediate);
    }
    await settle();
    expect(beats.length).toBeGreaterThan(5);
    expect(beats.length).toBeLessThanOrEqual(10);
    program.exit();
  });

  test('[FL-12] end with a cell that is lost', async () => {
    const { program, watch } = start();
    program.queue.fail(new Error('gone'));
    expect(await watch).toBe('lost');
  });
});
