import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { LOUD_PERL } from '../../test/support/loud-perl.ts';

const SCRIPT = join(dirname(import.meta.dirname), 'with-credentials.pl');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the guest program with these words and this stdin, as a cell would. */
export async function runWithCredentials(
  words: readonly string[],
  input: Uint8Array | readonly Uint8Array[],
): Promise<Ended> {
  const child = spawn('perl', [...LOUD_PERL, SCRIPT, ...words], {
    cwd: '/usr',
    env: { PATH: '/usr/bin:/bin', HOME: '/nowhere', KEPT: 'yes' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (stdout += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
  child.stdin.on('error', () => {});
  const closed = once(child, 'close');
  for (const piece of input instanceof Uint8Array ? [input] : input) {
    child.stdin.write(piece);
    await new Promise(setImmediate);
  }
  child.stdin.end();
  const [code]: unknown[] = await closed;
  if (stderr.includes('a warning: ')) throw new Error(stderr);
  return { code: typeof code === 'number' ? code : null, stdout, stderr };
}
