import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { waitFor } from '../support/leftovers.ts';

const SCRIPTS = fileURLToPath(new URL('../../scripts', import.meta.url));
let folder = '';
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'hotcell-repeated-'))));
afterEach(() => rmSync(folder, { recursive: true }));

/** The script with `run` in place of vitest, which has the number of the run in `runs`. */
function toScript(run: string, call: string): string[] {
  const script = `
    source "$0/setup.sh" && source "$0/repeat.sh"
    runs=0
    run_vitest() { runs=$((runs + 1)); printf '%s\\n' "$*" >>"$TMPDIR/asked"; ${run}; }
    ${call}`;
  return ['--norc', '-euo', 'pipefail', '-c', script, SCRIPTS];
}

const options = (): { env: Record<string, string> } => ({
  env: { PATH: process.env['PATH'] ?? '', TMPDIR: folder },
});

function repeated(run: string, call: string): { status: number | null; stderr: string; asked: string[] } {
  const { status, stderr } = spawnSync('bash', toScript(run, call), { ...options(), encoding: 'utf8' });
  return { status, stderr, asked: readFileSync(join(folder, 'asked'), 'utf8').trim().split('\n') };
}

describe('npm test -- --repeat', () => {
  test('runs the files as often as told, and keeps nothing of what passed', () => {
    const { status, stderr, asked } = repeated('echo noise', 'repeat_vitest 3 no a.test.ts "b c"');
    expect(status).toBe(0);
    expect(asked).toEqual(Array.from({ length: 3 }, () => 'a.test.ts b c'));
    expect(stderr).toMatch(/^(?:hotcell: run \d of 3 passed in \d+ s\n){3}hotcell: all 3 runs passed\n$/);
    expect(readdirSync(folder)).toEqual(['asked']);
  });

  test('stops at the first failure, with its code and its output', () => {
    const { status, stderr, asked } = repeated(
      'echo "words of $runs"; ((runs < 3)) || return 7',
      'repeat_vitest 9 no a.test.ts',
    );
    expect(status).toBe(7);
    expect(asked).toHaveLength(3);
    const [, log = ''] = /run 3 of 9 failed after 2 that passed; .* in (\S+)\n$/.exec(stderr) ?? [];
    expect(readFileSync(log, 'utf8')).toBe('words of 3\n');
    expect(stderr).toContain('words of 3\n');
    expect(stderr).not.toContain('words of 2');
  });

  test('--under-load has two busy loops beside it, which end with it', () => {
    const note = 'for pid in "${LOADS[@]}"; do kill -0 "$pid"; echo "$pid" >>"$TMPDIR/loads"; done';
    expect(repeated(note, 'repeat_vitest 1 yes a.test.ts')).toMatchObject({ status: 0 });
    const loads = readFileSync(join(folder, 'loads'), 'utf8').trim().split('\n');
    expect(loads).toHaveLength(2);
    expect(loads.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
  });

  test('the loops end also when it is killed', async () => {
    const file = join(folder, 'loads');
    const run =
      'printf "%s " "${LOADS[@]}" >"$TMPDIR/part" && mv "$TMPDIR/part" "$TMPDIR/loads"; read -r <&3';
    writeFileSync(join(folder, 'asked'), '');
    const child = spawn('bash', toScript(run, 'repeat_vitest 1 yes a.test.ts'), {
      ...options(),
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    await waitFor('it runs', () => existsSync(file));
    child.kill('SIGKILL');
    await once(child, 'exit');
    const loads = readFileSync(file, 'utf8').trim().split(' ');
    expect(loads).toHaveLength(2);
    await waitFor('the loops end', () => !loads.some((pid) => existsSync(`/proc/${pid}`)));
  });

  test.each([
    [['--repeat', '3'], 'want files'],
    [['--repeat', 'often', 'a.test.ts'], "a number of runs, not 'often'"],
    [['--under-load'], 'want files'],
  ])('%j is refused', (args, words) => {
    const { status, stderr } = spawnSync('bash', [join(SCRIPTS, 'test.sh'), ...args], { encoding: 'utf8' });
    expect(status).toBe(2);
    expect(stderr).toContain(words);
  });
});
