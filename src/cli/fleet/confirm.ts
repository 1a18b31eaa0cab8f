import { createInterface } from 'node:readline/promises';
import { HotcellError } from '../../core/errors.ts';
import { usageError } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';

/** Asks on a terminal. Where there is none, nobody has said yes. */
export async function confirm(question: string, terminal: Terminal): Promise<void> {
  if (!process.stdin.isTTY || !terminal.stderr.isTTY)
    throw usageError(
      'there is no terminal to ask on; nothing was done',
      'Give --yes if it is what you want.',
    );
  const lines = createInterface({ input: process.stdin, output: terminal.stderr });
  const stopped = new AbortController();
  lines.once('SIGINT', () => stopped.abort());
  lines.once('close', () => stopped.abort());
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: stopped.signal }).catch(() => '');
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    lines.close();
  }
  throw new HotcellError('CANCELLED', 'nothing was done', { hint: 'Answer y, or give --yes.' });
}
