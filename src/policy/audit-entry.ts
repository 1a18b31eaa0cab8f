import { hash } from 'node:crypto';

export type AuditAction =
  | 'session.create'
  | 'session.delete'
  | 'session.expire'
  | 'session.pause'
  | 'session.resume'
  | 'exec.start'
  | 'exec.end'
  | 'exec.kill'
  | 'terminal.open'
  | 'files.write'
  | 'egress.change'
  | 'refused';

/** Who did what. SECURITY: there is no place for values of variables, contents of files, or input of programs. */
export interface AuditEntry {
  readonly action: AuditAction;
  readonly tenant: string;
  readonly user?: string | null | undefined;
  readonly project?: string | null | undefined;
  /** The id itself; only a short hash of it is written. */
  readonly session?: string | undefined;
  readonly exec?: string | undefined;
  readonly command?: string | undefined;
  /** Names of the variables that came with the command. */
  readonly variables?: readonly string[] | undefined;
  /** Such as `ok`, `exit 1`, `timeout`, or the code of the error and the rule. */
  readonly outcome: string;
  /** Further words, such as hosts or the number of files. */
  readonly detail?: string | undefined;
}

const LONGEST_COMMAND = 8 * 1024;
const LONGEST_DETAIL = 1024;
const LONGEST_NAME = 256;
const MOST_VARIABLES = 100;

/** What JSON leaves as it is though terminals obey it or editors break lines there: DEL, C1, marks of direction. */
const UNSAFE = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** SECURITY: whoever has the id of a session may use it, so whoever reads the log must not learn it. */
export function toSessionMark(sessionId: string): string {
  return hash('sha256', sessionId, 'hex').slice(0, 12);
}

/** One line without its end, of bounded length. SECURITY: no text of users can end the line or begin another one. */
export function toAuditLine(entry: AuditEntry, wallTimeMs: number): string {
  const { command, variables } = entry;
  const fields = {
    time: new Date(wallTimeMs).toISOString(),
    action: entry.action,
    tenant: cut(entry.tenant, LONGEST_NAME),
    user: cut(entry.user ?? undefined, LONGEST_NAME),
    project: cut(entry.project ?? undefined, LONGEST_NAME),
    session: entry.session === undefined ? undefined : toSessionMark(entry.session),
    exec: cut(entry.exec, LONGEST_NAME),
    command: command?.slice(0, LONGEST_COMMAND),
    command_cut: cutCount(command?.length, LONGEST_COMMAND),
    variables: variables?.slice(0, MOST_VARIABLES).map((name) => cut(name, LONGEST_NAME)),
    variables_cut: cutCount(variables?.length, MOST_VARIABLES),
    outcome: cut(entry.outcome, LONGEST_NAME),
    detail: cut(entry.detail, LONGEST_DETAIL),
  };
  return JSON.stringify(fields).replace(UNSAFE, escaped);
}

/** How much was left out; absent when nothing was. */
function cutCount(length: number | undefined, most: number): number | undefined {
  return length !== undefined && length > most ? length - most : undefined;
}

function cut(text: string | undefined, most: number): string | undefined {
  return text !== undefined && text.length > most ? `${text.slice(0, most)}…` : text;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
