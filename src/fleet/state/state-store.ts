import {
  closeSync,
  copyFileSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type * as z from 'zod';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { FleetState, LOG_ENTRIES_KEPT, type LogEntry } from '../fleet-state.ts';
import type { FleetPaths } from '../names.ts';
import { EventFile } from './event-file.ts';
import { withFileLock } from './file-lock.ts';

/** Longer texts in an event are cut: they may be what a cell printed. */
const LONGEST_EVENT_TEXT = 8000;

interface Options {
  /** Told what was wrong with the file when the one before it was read instead. */
  readonly onWarning?: (message: string) => void;
  /** For the times of events. */
  readonly now?: () => Date;
}

/**
 * `.mahabharatha/state/<feature>.json`. Any process may change it: every change reads the file anew under the lock, and
 * appears by a rename. Reading needs no lock.
 */
export class StateStore {
  readonly #paths: FleetPaths;
  readonly #events: EventFile;
  readonly #warn: (message: string) => void;
  readonly #now: () => Date;

  constructor(paths: FleetPaths, options: Options = {}) {
    this.#paths = paths;
    this.#events = new EventFile(paths.events);
    this.#warn = options.onWarning ?? (() => {});
    this.#now = options.now ?? (() => new Date());
  }

  /** Undefined when the feature has no state. Throws FLEET_STATE when there is one that cannot be read. */
  read(): FleetState | undefined {
    return this.#load()?.state;
  }

  /** As `read`, but throws FLEET_UNKNOWN when there is none. */
  require(): FleetState {
    return this.read() ?? this.#unknown();
  }

  /** Replaces what was there. */
  create(initial: FleetState): FleetState {
    return withFileLock(this.#paths.stateLock, () => {
      const state = structuredClone(initial);
      const written = this.#events.lastNumber();
      // Counted on from what an earlier run of the feature left.
      for (const [index, entry] of state.execution_log.entries()) entry['seq'] = written + index + 1;
      state['event_seq'] = written + state.execution_log.length;
      this.#save(state, written, readOrProblem(this.#paths.state).state !== undefined);
      return state;
    });
  }

  /** Read, change, write, with nobody else in between. What `change` throws leaves everything as it was. */
  update<T>(change: (state: FleetState) => T): T {
    return withFileLock(this.#paths.stateLock, () => {
      const { state, isBackup } = this.#load() ?? this.#unknown();
      const before = JSON.stringify(state);
      const written = this.#events.lastNumber();
      state['event_seq'] = Math.max(numberOr(state['event_seq'], 0), written);
      const result = change(state);
      if (result instanceof Promise) throw new TypeError('a change of the state must not wait for anything');
      // Checked before it is written: one wrong field would make the file unreadable for everybody.
      const problem = describeProblem(FleetState.safeParse(state));
      if (problem !== undefined) throw new TypeError(`a change made the state invalid: ${problem}`);
      if (isBackup) keepBroken(this.#paths.state);
      if (isBackup || JSON.stringify(state) !== before) this.#save(state, written, !isBackup);
      return result;
    });
  }

  /** One event, in a change of its own. Within `update` call `appendEvent`. */
  note(event: string, data: Record<string, unknown> = {}): void {
    this.update((state) => appendEvent(state, event, data, this.#now()));
  }

  /** `written`: the last event that is in the file of events. `keepsBackup`: what is there is worth keeping. */
  #save(state: FleetState, written: number, keepsBackup: boolean): void {
    const { state: file } = this.#paths;
    const unwritten = state.execution_log.filter((entry) => numberOr(entry['seq'], 0) > written);
    state.execution_log = state.execution_log.slice(-LOG_ENTRIES_KEPT);
    const draft = `${file}.tmp`;
    writeDurably(draft, `${JSON.stringify(state, undefined, 2)}\n`);
    if (keepsBackup) keepBackup(file);
    renameSync(draft, file);
    // After the state: should we die here, the next change finds what is missing.
    this.#events.append(unwritten);
  }

  #load(): { state: FleetState; isBackup: boolean } | undefined {
    const { state: file } = this.#paths;
    const current = readOrProblem(file);
    if (current.state !== undefined) return { state: current.state, isBackup: false };
    const backup = readOrProblem(backupOf(file));
    // Only the rename of a first state could have left a backup alone; nobody does that, so it was removed by hand.
    if (current.problem === undefined) return undefined;
    if (backup.state !== undefined) {
      this.#warn(`${file} cannot be read (${current.problem}); the one before it is used, ${backupOf(file)}`);
      return { state: backup.state, isBackup: true };
    }
    throw new HotcellError('FLEET_STATE', `${file} cannot be read: ${current.problem}`, {
      hint: `${backup.problem === undefined ? 'There is no' : 'Nor can the'} ${backupOf(file)}. Mend the file, or remove it and start again; commits are on their branches.`,
    });
  }

  #unknown(): never {
    throw new HotcellError(
      'FLEET_UNKNOWN',
      `there is no state of feature ${this.#paths.feature} in ${this.#paths.stateFolder}`,
      { hint: `Start it with hotcell fleet run --feature ${this.#paths.feature}.` },
    );
  }
}

/** Adds an event to `execution_log`; the store writes it to the file of events, too. */
export function appendEvent(
  state: FleetState,
  event: string,
  data: Record<string, unknown> = {},
  now: Date = new Date(),
): void {
  const seq = numberOr(state['event_seq'], 0) + 1;
  state['event_seq'] = seq;
  const short = Object.fromEntries(Object.entries(data).map(([name, value]) => [name, shorten(value)]));
  const entry: LogEntry = { timestamp: now.toISOString(), event, data: short, seq };
  state.execution_log.push(entry);
}

function shorten(value: unknown): unknown {
  return typeof value === 'string' && value.length > LONGEST_EVENT_TEXT
    ? `${value.slice(0, LONGEST_EVENT_TEXT)} […]`
    : value;
}

function numberOr(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback;
}

export function backupOf(file: string): string {
  return `${file}.bak`;
}

/** Neither of both: there is no file. */
function readOrProblem(file: string): { state?: FleetState; problem?: string } {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return isMissing ? {} : { problem: messageOf(error) };
  }
  try {
    const parsed = FleetState.safeParse(JSON.parse(text));
    return parsed.success ? { state: parsed.data } : { problem: describeProblem(parsed) ?? '' };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function describeProblem(parsed: z.ZodSafeParseResult<FleetState>): string | undefined {
  const [issue] = parsed.error?.issues ?? [];
  if (issue === undefined) return undefined;
  return `${issue.path.join('.') || 'the file'}: ${issue.message}`;
}

function writeDurably(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const descriptor = openSync(file, 'w', 0o644);
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A second name for the file that is about to be replaced: no moment is without both. */
function keepBackup(file: string): void {
  const draft = `${backupOf(file)}.tmp`;
  rmSync(draft, { force: true });
  try {
    linkSync(file, draft);
  } catch {
    // Not every file system has links.
    copyFileSync(file, draft);
  }
  renameSync(draft, backupOf(file));
}

/** What somebody else wrote may be worth a look. */
function keepBroken(file: string): void {
  copyFileSync(file, `${file}.broken`);
}
