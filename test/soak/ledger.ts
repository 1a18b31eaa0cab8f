/** Nothing is there: a file that nobody has written. */
export const ABSENT = Symbol('absent');
type Content = string | typeof ABSENT;

export interface EndedCommand {
  readonly exitCode: number;
  readonly output: string;
}

/** What the server was told and has acknowledged of one session. */
export interface SessionEntry {
  readonly id: string;
  readonly project: string;
  readonly lane: number;
  /** What each file may hold: one content when it was acknowledged, more as long as nobody answered. */
  readonly files: Map<string, Set<Content>>;
  readonly ended: Map<string, EndedCommand>;
  /** Commands that write numbered lines until they are told to stop, with the marker that their process carries. */
  readonly counting: Map<string, string>;
  /** Terminals that nobody has left, with something that they show. */
  readonly terminals: Map<string, string>;
  paused: 'no' | 'perhaps';
  /** A hostile program may run in it, and take all that others need. */
  isBeset: boolean;
  /** Somebody has asked for its end and got no answer. */
  isLeaving: boolean;
}

const REMEMBERED_COMMANDS = 12;

/** Everything that was acknowledged, and what was asked for without an answer. */
export class Ledger {
  readonly sessions = new Map<string, SessionEntry>();
  readonly deleted = new Set<string>();
  /** How often each task of the fleets since the last check was committed. */
  readonly commits = new Map<string, number>();
  /** Sessions that were asked for without an answer: they may be there, by the name of their project. */
  readonly #asked = new Map<string, number>();
  /** So many sessions may be over without our asking, because their cells were killed. */
  #losable = 0;
  #acknowledged = 0;

  /** How many things were acknowledged so far. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  noteAnswer(): void {
    this.#acknowledged++;
  }

  askForSession(project: string, lane: number): void {
    this.#asked.set(project, lane);
  }

  addSession(id: string, project: string, lane: number): SessionEntry {
    this.#asked.delete(project);
    this.noteAnswer();
    const entry: SessionEntry = {
      id,
      project,
      lane,
      files: new Map(),
      ended: new Map(),
      counting: new Map(),
      terminals: new Map(),
      paused: 'no',
      isBeset: false,
      isLeaving: false,
    };
    this.sessions.set(id, entry);
    return entry;
  }

  /** The lane of a session that was asked for without an answer; undefined if nobody has asked for it. */
  takeAsked(project: string): number | undefined {
    const lane = this.#asked.get(project);
    this.#asked.delete(project);
    return lane;
  }

  /** The projects of those that nobody knows of. */
  forgetAsked(): string[] {
    const projects = [...this.#asked.keys()];
    this.#asked.clear();
    return projects;
  }

  /** As they are now: what is done with them may change which there are. */
  entries(): SessionEntry[] {
    return [...this.sessions.values()];
  }

  sessionOf(lane: number): SessionEntry | undefined {
    return this.entries().find((entry) => entry.lane === lane && !entry.isLeaving);
  }

  askForFile(entry: SessionEntry, path: string, content: string): void {
    const possible = entry.files.get(path) ?? new Set<Content>([ABSENT]);
    entry.files.set(path, possible.add(content));
  }

  addFile(entry: SessionEntry, path: string, content: string): void {
    this.noteAnswer();
    entry.files.set(path, new Set([content]));
  }

  forgetCommand(entry: SessionEntry, exec: string): void {
    entry.counting.delete(exec);
    entry.terminals.delete(exec);
  }

  addEnded(entry: SessionEntry, exec: string, command: EndedCommand): void {
    this.noteAnswer();
    this.forgetCommand(entry, exec);
    entry.ended.set(exec, command);
    // The server remembers a bounded number, too.
    const [oldest] = entry.ended.keys();
    if (entry.ended.size > REMEMBERED_COMMANDS && oldest !== undefined) entry.ended.delete(oldest);
  }

  addDeleted(entry: SessionEntry): void {
    this.noteAnswer();
    this.sessions.delete(entry.id);
    this.deleted.add(entry.id);
  }

  /** One that came to its end: its tasks, and of each commit the task. */
  addFleet(fleet: string, tasks: readonly string[], committed: readonly string[]): void {
    this.noteAnswer();
    for (const task of tasks)
      this.commits.set(`task ${task} of fleet ${fleet}`, committed.filter((id) => id === task).length);
  }

  allowLosses(count: number): void {
    this.#losable += count;
  }

  /** One of the losses that a fault may have caused; false if none of them is left. */
  takeLoss(): boolean {
    if (this.#losable === 0) return false;
    this.#losable--;
    return true;
  }

  forbidLosses(): void {
    this.#losable = 0;
  }
}
