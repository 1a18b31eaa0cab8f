import { ABSENT, type EndedCommand, type Ledger, type SessionEntry } from './ledger.ts';

export interface ListedSession {
  readonly id: string;
  readonly project: string;
}

/** What the server tells after a recovery. */
export interface Source {
  list(): Promise<readonly ListedSession[]>;
  /** HTTP status of one session. */
  status(id: string): Promise<number>;
  /** Undefined if there is no such file. */
  file(id: string, path: string): Promise<string | undefined>;
  /** Undefined if the server does not know it, or says that it runs. */
  ended(id: string, exec: string): Promise<EndedCommand | undefined>;
  /** Ends what still counts or waits for input, and tells what is wrong with it. */
  finish(entry: SessionEntry): Promise<readonly string[]>;
  /** Goes on if it was paused; fails if a command of it cannot be run. */
  wake(id: string): Promise<void>;
  /** Another session of a project whose session was lost. */
  reopen(entry: SessionEntry): Promise<SessionEntry>;
  /** Removes what a session of this project has left, if there was any. */
  clear(project: string): Promise<void>;
}

/** Compares what the server tells with what it has acknowledged; empty when all is there. The ledger says afterwards what is. */
export async function checkLedger(ledger: Ledger, source: Source): Promise<string[]> {
  const listed = await source.list();
  const wrong = [
    ...(await checkEnds(ledger, source, listed)),
    ...adoptUnanswered(ledger, listed),
    ...checkCommits(ledger),
  ];
  // One that was made for nobody may have been lost at once; its files wait for the next one of its project.
  for (const project of ledger.forgetAsked()) await source.clear(project);
  for (const entry of ledger.entries()) {
    const kept = listed.some(({ id }) => id === entry.id);
    const now = kept ? entry : await replaceLost(ledger, source, entry);
    if (now === undefined) {
      wrong.push(`session ${entry.id} of lane ${entry.lane} was acknowledged and is lost`);
      ledger.sessions.delete(entry.id);
      continue;
    }
    try {
      await source.wake(now.id);
      now.paused = 'no';
      now.isLeaving = false;
      wrong.push(...(await checkFiles(now, source)), ...(await checkCommands(now, source)));
      wrong.push(...(await source.finish(now)));
    } catch (error) {
      wrong.push(`session ${now.id}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  ledger.forbidLosses();
  return wrong;
}

/** What was deleted stays so, and what was perhaps deleted is either there or not. */
async function checkEnds(
  ledger: Ledger,
  source: Source,
  listed: readonly ListedSession[],
): Promise<string[]> {
  const wrong: string[] = [];
  for (const id of ledger.deleted) {
    const status = await source.status(id);
    if (listed.some((session) => session.id === id) || ![404, 410].includes(status))
      wrong.push(`session ${id} was deleted and is there again: ${status}`);
  }
  ledger.deleted.clear();
  for (const entry of ledger.entries()) {
    if (!entry.isLeaving || listed.some(({ id }) => id === entry.id)) continue;
    ledger.addDeleted(entry);
  }
  return wrong;
}

/** Sessions that were made for somebody who did not get the answer are whole, too. */
function adoptUnanswered(ledger: Ledger, listed: readonly ListedSession[]): string[] {
  const wrong: string[] = [];
  for (const { id, project } of listed) {
    if (ledger.sessions.has(id)) continue;
    const lane = ledger.takeAsked(project);
    if (lane === undefined) wrong.push(`session ${id} of ${project} is there, and nobody has asked for it`);
    else ledger.addSession(id, project, lane);
  }
  return wrong;
}

/** Whoever was killed when: nothing is lost, and nothing is done twice. */
function checkCommits({ commits }: Ledger): string[] {
  const wrong = [...commits].filter(([, count]) => count !== 1);
  commits.clear();
  return wrong.map(([task, count]) => `${task} was committed ${count} times`);
}

/** A cell that was killed ends its session, but not the files. */
async function replaceLost(
  ledger: Ledger,
  source: Source,
  entry: SessionEntry,
): Promise<SessionEntry | undefined> {
  if (!ledger.takeLoss() || (await source.status(entry.id)) !== 410) return undefined;
  ledger.sessions.delete(entry.id);
  const next = await source.reopen(entry);
  for (const [path, possible] of entry.files) next.files.set(path, possible);
  return next;
}

async function checkFiles(entry: SessionEntry, source: Source): Promise<string[]> {
  const wrong: string[] = [];
  for (const [path, possible] of entry.files) {
    const found = (await source.file(entry.id, path)) ?? ABSENT;
    if (!possible.has(found)) {
      const words = found === ABSENT ? 'is gone' : `holds what nobody wrote: ${found.slice(0, 80)}`;
      wrong.push(`session ${entry.id}: file ${path} ${words}`);
    }
    entry.files.set(path, new Set([found]));
  }
  return wrong;
}

async function checkCommands(entry: SessionEntry, source: Source): Promise<string[]> {
  const wrong: string[] = [];
  for (const [exec, told] of entry.ended) {
    const found = await source.ended(entry.id, exec);
    if (found?.exitCode === told.exitCode && found.output === told.output) continue;
    wrong.push(
      `session ${entry.id}: command ${exec} had ${describe(told)}, now ${found === undefined ? 'nothing' : describe(found)}`,
    );
    entry.ended.delete(exec);
  }
  return wrong;
}

function describe({ exitCode, output }: EndedCommand): string {
  return `exit code ${exitCode} and output ${output}`;
}
