import { readdirSync } from 'node:fs';
import { readIfThere } from './hostile-files.ts';

/** A process with a secret in its environment. */
interface Holder {
  /** Its command line, and those of its parents up to the first of the cell. */
  readonly line: string;
  /** It is in a mount namespace of its own. */
  readonly inCell: boolean;
}

/** Shorter than any program of Node runs, and not so short that this is all that the machine does. */
const EVERY_MS = 60;

/** Looks at all processes that this machine gets from now on again and again for a secret. */
export class Watch {
  readonly onCommandLines: string[] = [];
  readonly inContainers: string[] = [];
  inspected = 0;
  readonly environments: Holder[] = [];
  samples = 0;
  readonly #secret: string;
  readonly #timer: NodeJS.Timeout;
  readonly #known = new Set<string>();
  /** They are older than the secret: those of the kernel and whatever else runs here, most of all there are. */
  readonly #before = new Set(listPids());

  /** What the engine says of containers is looked at, too. */
  constructor(secret: string, inspect: () => Promise<readonly string[]>) {
    this.#secret = secret;
    let isAsking = false;
    this.#timer = setInterval(() => {
      this.#look();
      if (isAsking) return;
      isAsking = true;
      void inspect().then((texts) => {
        this.inspected += texts.length;
        this.inContainers.push(...texts.filter((text) => text.includes(secret)));
        isAsking = false;
      });
    }, EVERY_MS);
  }

  #look(): void {
    this.samples++;
    const processes = readProcesses(listPids().filter((pid) => !this.#before.has(pid)));
    for (const [pid, { command }] of processes) {
      if (command.includes(this.#secret)) this.onCommandLines.push(command);
      if (!readIfThere(`/proc/${pid}/environ`).includes(this.#secret) || this.#known.has(pid + command))
        continue;
      this.#known.add(pid + command);
      const inCell = readIfThere(`/proc/${pid}/mountinfo`).includes(' /workspace ');
      this.environments.push({ line: toLine(processes, pid), inCell });
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

interface Seen {
  readonly command: string;
  readonly parent: string;
}

function listPids(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
}

/** All at one moment: of one that has ended nobody can tell any more whose child it was. */
function readProcesses(pids: readonly string[]): ReadonlyMap<string, Seen> {
  const seen = pids.map((pid): [string, Seen] => {
    const parent = /^PPid:\s*(\d+)/m.exec(readIfThere(`/proc/${pid}/status`))?.[1] ?? '0';
    return [pid, { command: readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' '), parent }];
  });
  // One that is about to end has no command line any more.
  return new Map(seen.filter(([, { command }]) => command !== ''));
}

function toLine(processes: ReadonlyMap<string, Seen>, pid: string): string {
  const seen = processes.get(pid);
  return seen === undefined ? '' : `${seen.command}< ${toLine(processes, seen.parent)}`;
}
