import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellError, messageOf } from '../core/errors.ts';
import { judgeOwner, reachablePid } from '../drivers/process/owner.ts';
import { serverFileOf } from '../sessions/session-store.ts';

const LOOK_MS = 100;
/** An orderly stop waits for programs; whoever is asked a second time does not. */
const ORDERLY_MS = 30_000;
const AT_ONCE_MS = 10_000;

/** The process that serves the sessions of this folder; undefined when none does. */
export async function findServer(dir: string): Promise<ServingProcess | undefined> {
  const record = await readFile(serverFileOf(dir), 'utf8').catch(() => '');
  return (await judgeOwner(record)) === 'alive' ? new ServingProcess(dir, record) : undefined;
}

class ServingProcess {
  /** Undefined: it is in another container or on another machine, which share the folder with us. */
  readonly pid: number | undefined;
  readonly #dir: string;
  readonly #record: string;

  constructor(dir: string, record: string) {
    this.#dir = dir;
    this.#record = record;
    this.pid = reachablePid(record);
  }

  /** Resolves when it has ended. */
  async stop(): Promise<void> {
    const { pid } = this;
    if (pid === undefined)
      throw new HotcellError(
        'SESSIONS_UNAVAILABLE',
        `a server of another container or machine uses ${this.#dir}`,
        { hint: 'Run hotcell down there.' },
      );
    for (const withinMs of [ORDERLY_MS, AT_ONCE_MS]) {
      this.#ask(pid);
      if (await this.#hasEnded(withinMs)) return;
    }
    throw new HotcellError('SESSIONS_UNAVAILABLE', `the server (pid ${pid}) does not stop`, {
      hint: `End it, and run this again: kill -9 ${pid}`,
    });
  }

  #ask(pid: number): void {
    try {
      process.kill(pid, 'SIGTERM');
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return;
      throw new HotcellError(
        'SESSIONS_UNAVAILABLE',
        `the server (pid ${pid}) cannot be stopped: ${messageOf(error)}`,
        { hint: 'Run this as the user who started it.', cause: error },
      );
    }
  }

  async #hasEnded(withinMs: number): Promise<boolean> {
    for (const end = performance.now() + withinMs; performance.now() < end; await sleep(LOOK_MS))
      if ((await judgeOwner(this.#record)) !== 'alive') return true;
    return false;
  }
}
