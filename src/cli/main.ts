import { CommanderError } from 'commander';
import { RunnerError } from '../client/runner-error.ts';
import { toHotcellError } from '../core/errors.ts';
import { EXIT_CODES, toExitCode } from './exit-codes.ts';
import { FLEET_PROGRAM, PROGRAM, makeFleetProgram, makeProgram, type Outcome } from './program.ts';
import { renderError, type Failure } from './render/error.ts';
import { HINTS } from './session/hints.ts';
import { Terminal } from './terminal.ts';

const terminal = new Terminal({ stdout: process.stdout, stderr: process.stderr });
const outcome: Outcome = { exitCode: EXIT_CODES.done, debug: false };
const given = process.argv.slice(2);
// Told by the launcher of that name.
const isFleet = given[0] === FLEET_PROGRAM;
const words = isFleet ? given.slice(1) : given;
try {
  const program = isFleet ? makeFleetProgram(terminal, outcome) : makeProgram(terminal, outcome);
  await program.parseAsync(words, { from: 'user' });
} catch (error) {
  outcome.exitCode = report(error);
}
await terminal.flush();
// Ends here even if a library keeps a timer: whoever had something to close has closed it.
process.exit(outcome.exitCode);

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.usage;
  const known = error instanceof RunnerError ? withHint(error) : toHotcellError(error);
  const ours = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  renderError(terminal, known, {
    program: isFleet ? FLEET_PROGRAM : PROGRAM,
    json: ours.includes('--json'),
    debug: outcome.debug,
  });
  return toExitCode(known);
}

/** The hints of a server speak of requests; here they speak of commands. */
function withHint(error: RunnerError): Failure {
  const { name, message, code, field, hint, stack, cause } = error;
  return {
    name,
    message,
    code,
    field,
    hint: HINTS.get(code) ?? hint,
    cause,
    ...(stack === undefined ? {} : { stack }),
  };
}
