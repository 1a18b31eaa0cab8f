import { spawn } from 'node:child_process';
import type { HttpRunnerClient } from '../../client/http-runner-client.ts';
import { EXIT_CODES, usageError } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';
import { DETACH_KEYS, DetachKeys } from './detach-keys.ts';
import { explainEnd, toExitCode, write } from './exec-command.ts';

interface ShellWish {
  readonly sessionId: string;
  /** A terminal that is there already. */
  readonly attach: string | undefined;
  readonly command: string | undefined;
}

/** Colours, hidden cursor, reports of the mouse and of pasting: whatever a program left behind that was not ended. */
const TIDY = '\u001b[0m\u001b[?25h\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?2004l';
const USUAL_SIZE = { rows: 24, columns: 80 };

/** A terminal of the session in this terminal. Resolves with the exit code. */
export async function runShell(
  client: HttpRunnerClient,
  { sessionId, attach, command }: ShellWish,
  terminal: Terminal,
): Promise<number> {
  const { stdin } = process;
  const { stdout } = terminal;
  if (!stdin.isTTY || !stdout.isTTY) {
    throw usageError(
      'a shell needs a terminal',
      `Run single commands with hotcell session exec ${sessionId} …`,
    );
  }
  const sizeNow = () => ({
    rows: stdout.rows || USUAL_SIZE.rows,
    columns: stdout.columns || USUAL_SIZE.columns,
  });
  const connection = await client.openTerminal(sessionId, { ...sizeNow(), execId: attach, command });
  terminal.note(`hotcell: ${connection.execId} in ${sessionId}; ${DETACH_KEYS} leaves it running`);

  const keys = new DetachKeys();
  let hasLeft = false;
  const onKeys = (typed: Uint8Array): void => {
    const { pass, leaves } = keys.take(typed);
    if (pass.length > 0) connection.write(pass);
    if (!leaves) return;
    hasLeft = true;
    connection.close();
  };
  const onResize = (): void => connection.resize(sizeNow());
  const onHangup = (): void => connection.close();
  await makeRaw(stdin);
  stdin.on('data', onKeys);
  stdout.on('resize', onResize);
  process.on('SIGHUP', onHangup);
  process.on('SIGTERM', onHangup);
  try {
    for await (const bytes of connection) await write(terminal, 'stdout', bytes);
  } finally {
    stdin.off('data', onKeys);
    stdout.off('resize', onResize);
    process.off('SIGHUP', onHangup);
    process.off('SIGTERM', onHangup);
    stdout.write(TIDY);
    stdin.setRawMode(false);
    stdin.pause();
  }
  if (connection.lostBytes > 0)
    terminal.note(`hotcell: ${connection.lostBytes} older bytes were no longer kept`);
  const result = await connection.exit;
  if (result !== undefined) {
    explainEnd(result, terminal);
    return toExitCode(result);
  }
  terminal.note('');
  terminal.note(`hotcell: left ${connection.execId}, which goes on`);
  terminal.note(`  → Come back with hotcell session shell ${sessionId} --attach ${connection.execId}`);
  return hasLeft ? EXIT_CODES.done : EXIT_CODES.hangup;
}

/** Every key as it is. Node still turns line feeds of the output into new lines, which spoils full-screen programs. */
async function makeRaw(stdin: NodeJS.ReadStream): Promise<void> {
  stdin.setRawMode(true);
  await new Promise<void>((resolve) => {
    const stty = spawn('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
    // Where there is none, the terminal stays as it is.
    stty.once('error', () => resolve());
    stty.once('close', () => resolve());
  });
}
