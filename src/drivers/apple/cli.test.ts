import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { ContainerCli } from './cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'hotcell-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));

let count = 0;
/** A command that does this and nothing else. */
function cliOf(script: string): ContainerCli {
  const file = join(folder, `container-${++count}`);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return new ContainerCli(file);
}

const isAlive = (pid: number): boolean => {
  try {
    // One that is dead and not yet collected has no command line.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
  } catch {
    return false;
  }
};

describe('a call', () => {
  test('[MC-13] gets its words as they are, and next to nothing of our environment', async () => {
    vi.stubEnv('CONTAINER_DEFAULT_PLATFORM', 'linux/amd64');
    const cli = cliOf('printf "%s\\n" "$@"; env');
    const printed = await cli.call('x', ['run', '$(id)', 'a b']);
    vi.unstubAllEnvs();
    expect(printed).toMatch(/^run\n\$\(id\)\na b\n/);
    expect(printed).not.toContain('CONTAINER_DEFAULT_PLATFORM');
  });

  test('[MC-13] that ends with an error is refused in its own words', async () => {
    await expect(cliOf('echo "Error: no" >&2; exit 3').call('do it', ['x'])).rejects.toMatchObject({
      name: 'CliRefusal',
      code: 3,
      words: 'Error: no',
    });
  });

  test('[MC-13] that hangs is killed at its deadline, and so is whoever waits for it set free', async () => {
    const pidFile = join(folder, 'pid');
    const cli = cliOf(`echo $$ >${pidFile}; sleep 5 & wait`);
    const call = cli.call('do it', ['x'], 1500);
    await expect(call).rejects.toMatchObject({
      code: 'DRIVER_UNAVAILABLE',
      message: 'container did not answer within 2 seconds when asked to do it',
    });
    expect(existsSync(pidFile)).toBe(true);
    await expect.poll(() => isAlive(Number(readFileSync(pidFile, 'utf8')))).toBe(false);
  });

  test('[MC-13] that says too much is cut off', async () => {
    await expect(cliOf('exec cat /dev/zero').call('do it', ['x'])).rejects.toMatchObject({
      message: 'container said too much when asked to do it',
    });
  });

  test('[MC-13] that somebody kills is a failure that says so', async () => {
    await expect(cliOf('kill -9 $$').call('do it', ['x'])).rejects.toMatchObject({
      words: 'the command was killed by SIGKILL',
    });
  });

  test('[MC-13] of a program that is not there names it', async () => {
    await expect(new ContainerCli('/nonexistent/container').call('x', ['y'])).rejects.toMatchObject({
      code: 'DRIVER_UNAVAILABLE',
      message: 'there is no program /nonexistent/container',
    });
  });
});

describe('long work', () => {
  test('[MC-12] is followed line by line', async () => {
    const lines: string[] = [];
    await cliOf('echo one >&2; printf "two\\r\\033[31mthree\\n"').follow('build', ['build'], {
      silenceMs: 30_000,
      onLine: (line) => lines.push(line),
    });
    expect(lines.toSorted()).toEqual(['one', 'three', 'two']);
  });

  test('[MC-12] may take longer than any silence, but not be silent', async () => {
    const following = { silenceMs: 1000, onLine: () => {} };
    await expect(
      cliOf('for i in 1 2 3 4 5; do echo $i; sleep 0.3; done').follow('build', ['build'], following),
    ).resolves.not.toThrow();
    await expect(
      cliOf('echo 1; exec sleep 1000').follow('build', ['build'], following),
    ).rejects.toMatchObject({
      code: 'DRIVER_UNAVAILABLE',
    });
  });
});
