import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const TICK_MS = 10;

/** What others do on this machine, looked at in the pauses in which we ourselves do nothing. */
export class ForeignLoad {
  #busyMs = 0;
  #pausesMs = 0;

  async pause(ms: number): Promise<void> {
    const startedAt = performance.now();
    const before = readBusyTicks();
    await sleep(ms);
    this.#busyMs += (readBusyTicks() - before) * TICK_MS;
    this.#pausesMs += performance.now() - startedAt;
  }

  /** Cores that were busy, on average over all pauses. */
  get cores(): number {
    return this.#busyMs / this.#pausesMs;
  }
}

function readBusyTicks(): number {
  const line = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '';
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return user + nice + system + irq + softirq;
}
