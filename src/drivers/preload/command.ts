import { spawn, type ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import type { Usage } from '../../core/exec.ts';
import { ChildExec } from '../process/child-exec.ts';
import { signalGroup } from './process-group.ts';
import { Watch, type WatchOptions } from './watch.ts';

/** The words in which the launcher says why the program did not start are not without end. */
const WORDS_KEPT = 2000;

/** How a command is started. */
export interface Launch {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** For the launcher, on descriptor 3; it never stands where others could read it. */
  readonly plan: string | undefined;
}

export type LaunchedProcess = ChildProcess;

/** Starts the first process of a command, in a group of its own. A launcher then waits for its plan. */
export function startProcess({ argv, env, cwd }: Omit<Launch, 'plan'>): LaunchedProcess {
  const [program, ...rest] = argv;
  const child = spawn(program, rest, { env, cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe', 'pipe'] });
  for (const stream of child.stdio) stream?.on('error', () => {});
  return child;
}

type Watched = Omit<WatchOptions, 'pid' | 'onPassed'>;

/** A running command: one process group, watched and ended as a whole. */
export class Command extends ChildExec {
  readonly #pid: number | undefined;
  readonly #watch: Watch | undefined;
  readonly #words: { text: string };

  constructor(child: LaunchedProcess, plan: string | undefined, watched: Watched) {
    super(child);
    this.#pid = child.pid;
    if (child.pid !== undefined)
      this.#watch = new Watch({ ...watched, pid: child.pid, onPassed: (limit) => void this.end(limit) });
    this.#words = handOver(child, plan);
  }

  /** What it takes now. */
  current(): ReturnType<Watch['current']> | undefined {
    return this.#watch?.current();
  }

  override usage(): Promise<Usage> {
    this.#watch?.current();
    return super.usage();
  }

  protected signal(name: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (this.#pid !== undefined) signalGroup(this.#pid, name);
    return Promise.resolve();
  }

  protected figures(): Usage {
    return this.#watch?.usage() ?? { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
  }

  protected override onExit(): void {
    this.#watch?.end();
  }

  protected override async lookBack(code: number | null): Promise<string | undefined> {
    if (this.#words.text !== '') return this.#words.text;
    if (code !== 0) await this.#watch?.lookAtDiskOnce();
    return undefined;
  }
}

/** Gives the launcher its plan, and listens to what it has to say. */
function handOver(child: LaunchedProcess, plan: string | undefined): { text: string } {
  const words = { text: '' };
  const line = child.stdio[3];
  if (!(line instanceof Socket)) return words;
  line.on('data', (bytes: Buffer) => {
    if (words.text.length < WORDS_KEPT) words.text += bytes.toString('latin1');
  });
  line.end(plan ?? '');
  return words;
}
