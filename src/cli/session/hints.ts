/** What to do here about an error of a server, whose own hints speak of requests. */
export const HINTS: ReadonlyMap<string, string> = new Map([
  ['NETWORK', 'Start the server with `hotcell up`, or name another one with --url.'],
  ['UNAUTHORIZED', 'Set HOTCELL_API_KEY to the key of the server.'],
  ['SESSION_UNKNOWN', '`hotcell session list` shows yours, `hotcell session create PROJECT` makes one.'],
  ['SESSION_ENDED', 'Make a new one with `hotcell session create PROJECT`.'],
  ['SESSION_BUSY', 'Wait for the end of the running command, leave --reject out, or add --background.'],
  ['EXEC_UNKNOWN', '`hotcell session logs SESSION --json` lists the commands of a session.'],
  ['EXEC_ENDED', '`hotcell session logs SESSION EXEC` shows what it said.'],
  ['BODY_TOO_LARGE', 'Send less, or let the operator raise sessions.bodyLimitBytes.'],
]);
