import { spawn } from 'node:child_process';
import { HotcellError } from '../../core/errors.ts';
import type { Environment } from '../fleet-machine.ts';

const LONGEST_MS = 15 * 60_000;
const LAST_WORDS = 4000;

/**
 * Runs the npm of this machine and says what it printed. In a folder of ours: the settings of the project that somebody
 * happens to stand in are none of ours.
 */
export function runNpm(
  args: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Environment },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', args, {
      cwd,
      env: { ...env, npm_config_update_notifier: 'false', npm_config_audit: 'false' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LONGEST_MS,
      killSignal: 'SIGKILL',
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-LAST_WORDS)));
    child.on('error', (error) => reject(toNpmError(args, error.message, error)));
    child.on('close', (code) => {
      if (code === 0) resolve(stdout);
      else reject(toNpmError(args, whatWentWrong(stderr) || `it ended with ${code ?? 'a signal'}`));
    });
  });
}

function toNpmError(args: readonly string[], reason: string, cause?: unknown): HotcellError {
  const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
  return new HotcellError('PACKAGE_UNAVAILABLE', `npm ${args[0] ?? ''} failed: ${reason}`, {
    cause,
    hint: isMissing
      ? 'Install npm, which comes with Node.js: https://nodejs.org'
      : `Try it by hand: npm ${args.join(' ')}`,
  });
}

/** npm says the reason in lines of their own; the rest is where its log lies. */
function whatWentWrong(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => /^npm (error|ERR!)/.test(line));
  return lines
    .map((line) => line.replace(/^npm (error|ERR!) ?/, '').trim())
    .filter((line) => line !== '' && !line.includes('complete log of this run'))
    .slice(0, 5)
    .join('; ');
}
