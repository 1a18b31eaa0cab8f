import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

/** One orchestrator. */
export class HostileFleet {
  readonly process: ChildProcess;
  readonly ended: Promise<number | null>;
  stdout = '';
  stderr = '';

  constructor(child: ChildProcess) {
    this.process = child;
    child.stdout?.on('data', (bytes: Buffer) => (this.stdout += bytes.toString()));
    child.stderr?.on('data', (bytes: Buffer) => (this.stderr += bytes.toString()));
    this.ended = once(child, 'close').then(([code]) => code as number | null);
  }

  get isOver(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  /** The most memory that it ever had. */
  peakBytes(): number {
    const status = readFileSync(`/proc/${this.process.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s*(\d+)/m.exec(status)?.[1]) * 1024;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (!this.isOver) this.process.kill(signal);
    await this.ended;
  }
}
