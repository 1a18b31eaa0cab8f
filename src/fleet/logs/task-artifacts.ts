import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { sharedTaskFolder, taskFolder, type FleetPaths } from '../names.ts';
import { BoundedOutput } from './bounded-output.ts';
import type { LogLine } from './log-line.ts';
import { appendLine } from './worker-log.ts';

const USUAL_LIMIT_BYTES = 4 * 1024 ** 2;

/** In the order in which they come about, and in which they are shown. */
export const ARTIFACT_FILES = {
  execution: 'execution.jsonl',
  agent: 'claude_output.txt',
  verification: 'verification_output.txt',
  diff: 'git_diff.patch',
  interrupted: 'interrupted.patch',
} as const;
export type Artifact = keyof typeof ARTIFACT_FILES;

/** What is kept of a task on the host: `logs/features/<feature>/tasks/<id>/`. */
export class TaskArtifacts {
  readonly folder: string;
  readonly #limitBytes: number;

  /** `limitBytes`: most that one attempt adds to one file. */
  constructor(paths: FleetPaths, taskId: string, options: { readonly limitBytes?: number } = {}) {
    this.folder = taskFolder(paths, taskId);
    this.#limitBytes = options.limitBytes ?? USUAL_LIMIT_BYTES;
  }

  #path(artifact: Artifact): string {
    // Again for every file: `remove` may have come between.
    mkdirSync(this.folder, { recursive: true });
    return join(this.folder, ARTIFACT_FILES[artifact]);
  }

  /** A line of the worker's log that is about this task. */
  record(line: LogLine | undefined): void {
    if (line !== undefined) appendLine(this.#path('execution'), line);
  }

  /** Appends one attempt below a heading of its own; what comes in is on disk at once, apart from the end of a long one. */
  openOutput(artifact: 'agent' | 'verification', heading: string): BoundedOutput {
    const file = openSync(this.#path(artifact), 'a+', 0o644);
    try {
      writeSync(file, `${endsOpen(file) ? '\n' : ''}==== ${heading.replaceAll(/\s+/g, ' ')} ====\n`);
      return new BoundedOutput(file, this.#limitBytes);
    } catch (error) {
      closeSync(file);
      throw error;
    }
  }

  /** What the commit of the task changed. */
  writeDiff(bytes: Uint8Array): void {
    writeFileSync(this.#path('diff'), this.#bounded(bytes), { mode: 0o644 });
  }

  /** What an attempt that was cut short had changed. */
  writeInterrupted(bytes: Uint8Array): void {
    // Whole: it is the only copy of this work, and half of a patch does not apply.
    writeFileSync(this.#path('interrupted'), bytes, { mode: 0o644 });
  }

  #bounded(bytes: Uint8Array): Uint8Array {
    if (bytes.length <= this.#limitBytes) return bytes;
    const note = `\n[… ${bytes.length - this.#limitBytes} bytes cut; git show has all of it …]\n`;
    return Buffer.concat([bytes.subarray(0, this.#limitBytes), Buffer.from(note)]);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The files that are kept of a task; if there are none, those that an earlier version has kept. */
export function listArtifacts(paths: FleetPaths, taskId: string): string[] {
  const [own = [], earlier = []] = [taskFolder(paths, taskId), sharedTaskFolder(paths, taskId)].map(
    (folder) =>
      Object.values(ARTIFACT_FILES)
        .map((name) => join(folder, name))
        .filter((file) => existsSync(file)),
  );
  return own.length > 0 ? own : earlier;
}

/** An attempt that was killed may have ended within a line. */
function endsOpen(file: number): boolean {
  const { size } = fstatSync(file);
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  readSync(file, last, 0, 1, size - 1);
  return last[0] !== 0x0a;
}
