import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect } from 'vitest';
import { AppleDouble, IMAGE, whyNoDouble } from '../support/apple-double/apple-double.ts';
import { waitFor } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';

/** What a driver may rely on the double to be strict about, tried at the command itself. */
const test = testThatNeeds(whyNoDouble());
const double = new AppleDouble();
const folder = mkdtempSync(join(tmpdir(), 'apple-double-test-'));
afterAll(async () => {
  await double[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

let count = 0;
/** A container that runs and idles. */
function startIdle(...options: readonly string[]): string {
  const id = `idle-${++count}`;
  const { code, stderr } = double.run(
    'run',
    '-d',
    '--progress',
    'none',
    '--name',
    id,
    ...options,
    '--entrypoint',
    'sleep',
    IMAGE,
    '1000',
  );
  if (code !== 0) throw new Error(stderr);
  return id;
}

const runOf = (...words: readonly string[]) => double.run('run', '--rm', '--progress', 'none', ...words);

describe('what is not forbidden is allowed', () => {
  const LOOK =
    'id -u; touch /x && echo root; touch /etc/x && echo etc; tail -n +3 /proc/net/dev | grep -vc lo:; grep CapEff /proc/self/status';
  const script = ['--entrypoint', 'sh', IMAGE, '-c', LOOK];

  test('[MC-13] without a word a program is root, with a network and a root to write to', () => {
    const { stdout } = runOf(...script);
    expect(stdout).toMatch(/^0\nroot\netc\n[1-9]\d*\nCapEff:\t(?!0{16})/);
  });

  test('[MC-13] each wall stands only where it was asked for', () => {
    const walls = ['--user', '1000:1000', '--read-only', '--network', 'none', '--cap-drop', 'ALL'];
    const { stdout } = runOf(...walls, ...script);
    expect(stdout).toBe('1000\n0\nCapEff:\t0000000000000000\n');
  });

  test('[MC-13] folders are writable unless they are not', () => {
    const read = ['--entrypoint', 'sh', IMAGE, '-c', 'touch /data/x && echo wrote; true'];
    expect(runOf('-v', `${folder}:/data:ro`, ...read).stdout).toBe('');
    expect(runOf('--mount', `type=virtiofs,source=${folder},target=/data,readonly`, ...read).stdout).toBe('');
  });
});

describe('refusals of run', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  test.each([
    [['-m', '128m'], 'minimum memory amount allowed is 200 MiB (got 134217728 bytes)'],
    [['-m', '5x'], 'invalid symbol: x'],
    [['--name', 'x'], 'container ID x is not a valid container ID'],
    [['--name', 'a'.repeat(64)], 'is not a valid container ID'],
    [
      ['--network', 'none', '--network', 'default'],
      'no other networks may be created along with network none',
    ],
    [['--network', 'none,mtu=1500'], 'network none not found'],
    [['--label', 'a=b=c'], 'invalid label format'],
    [['--ulimit', 'as=1'], 'ulimit'],
    [['--mount', `type=bind,source=${file},target=/x`], `path '${file}' is not a directory`],
    [['--mount', 'type=tmpfs,target=/x,nr_inodes=5'], 'unknown directive nr_inodes'],
    [['--mount', 'type=tmpfs,size=1m'], 'mount destination cannot be empty'],
    [['-v', '/nonexistent:/x'], "path '/nonexistent' does not exist"],
    [['--cap-drop', 'EVERYTHING'], 'invalid capability'],
    [['--user', 'somebody'], 'somebody'],
    [['--entrypoint', 'nosuch'], 'failed to find target executable nosuch'],
  ])('[MC-13] %j', (options, words) => {
    const { code, stderr } = runOf(...options, IMAGE);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(words) as string });
    expect(double.ids()).toEqual([]);
  });

  test('[MC-13] an image that is not there is pulled without a word, or refused by the registry', () => {
    expect(runOf('nowhere:1')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('401 Unauthorized') as string,
    });
    double.control({ registry: ['somewhere:1'] });
    expect(runOf('--entrypoint', 'true', 'somewhere:1')).toMatchObject({ code: 0, stderr: '' });
    expect(double.run('image', 'inspect', 'somewhere:1').code).toBe(0);
  });

  test('[MC-13] options of docker for a tmpfs become part of its path', () => {
    const { stdout } = runOf('--tmpfs', '/t:size=1m', '--entrypoint', 'ls', IMAGE, '-d', '/t:size=1m');
    expect(stdout).toBe('/t:size=1m\n');
  });

  test('[MC-13] progress goes into stderr unless it is forbidden', () => {
    expect(double.run('run', '--rm', '--entrypoint', 'true', IMAGE).stderr).not.toBe('');
    expect(runOf('--entrypoint', 'true', IMAGE).stderr).toBe('');
  });
});

describe('exec', () => {
  test('[MC-13] has the exit code of the program, and 1 with words when there is none', () => {
    const id = startIdle('--env', 'OLD=1');
    for (const code of [0, 1, 42, 137])
      expect(double.run('exec', id, 'sh', '-c', `exit ${code}`).code).toBe(code);
    expect(double.run('exec', id, 'nosuch')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Error: .*failed to find target executable nosuch/) as string,
    });
    // What the first process has is not replaced.
    expect(double.run('exec', '-e', 'OLD=2', '-e', 'NEW=3', id, 'printenv', 'OLD', 'NEW').stdout).toBe(
      '1\n3\n',
    );
    double.run('rm', '-f', id);
    expect(double.run('exec', id, 'true').stderr).toBe(`Error: get failed: container ${id} not found\n`);
  });

  test('[MC-13] a stopped container takes none', () => {
    const id = startIdle();
    expect(double.run('stop', '-t', '0', id)).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(double.run('exec', id, 'true').stderr).toBe(`Error: container ${id} is not running\n`);
    expect(double.run('stop', id)).toMatchObject({ code: 0 });
    double.run('rm', id);
  });
});

describe('the end of the command is not that of the container', () => {
  const running = (id: string): boolean => double.state.stateOf(id).state === 'running';
  const start = async (id: string) => {
    const child = double.spawn('run', '-i', '--progress', 'none', '--name', id, '--entrypoint', 'cat', IMAGE);
    child.stdin.write('hello');
    await once(child.stdout, 'data');
    return child;
  };

  test('[MC-13] killed, it leaves the container running', async () => {
    const child = await start('survivor');
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(running('survivor')).toBe(true);
    expect(double.run('rm', '-f', 'survivor').code).toBe(0);
  });

  test('[MC-13] signals do not arrive; the third ends the command', async () => {
    const child = await start('deaf');
    const closed = once(child, 'close') as Promise<[number]>;
    let said = '';
    child.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()));
    for (const times of [1, 2, 3]) {
      child.kill('SIGTERM');
      await waitFor('it says so', () => said.split('failed to send signal').length > times);
    }
    const [code] = await closed;
    expect([code, running('deaf')]).toEqual([1, true]);
    expect(said).toContain("Received 3 SIGINT/SIGTERM's, forcefully exiting.");
    double.run('rm', '-f', 'deaf');
  });

  test('[MC-13] the end of its input is that of the program', async () => {
    const child = await start('polite');
    child.stdin.end();
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(running('polite')).toBe(false);
    double.run('rm', 'polite');
  });
});

describe('removal', () => {
  test('[MC-13] needs force for what runs, and fails for what is not there', () => {
    const id = startIdle();
    expect(double.run('rm', id)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is running and can not be deleted') as string,
    });
    expect(double.run('delete', '--force', id, id)).toMatchObject({ code: 0, stdout: `${id}\n` });
    for (const verb of ['stop', 'kill', 'delete']) {
      expect(double.run(verb, id)).toEqual({
        code: 1,
        stdout: '',
        stderr: `Error: internalError: "failed to ${verb} container" (cause: "notFound: "container with ID ${id} not found"")\n`,
      });
    }
    expect(double.run('inspect', id).stderr).toBe(`Error: container not found: ${id}\n`);
    expect(double.run('rm').stderr).toBe('Error: no containers specified and --all not supplied\n');
    expect(double.run('rm', '--all', id).code).toBe(1);
  });

  test('[MC-13] one with --rm removes itself, and whoever removes it meanwhile may find nothing', () => {
    const id = startIdle('--rm');
    expect([0, 1]).toContain(double.run('rm', '-f', id).code);
    expect(double.ids()).not.toContain(id);
  });
});

describe('forms', () => {
  test('[MC-13] list and inspect are those of the version', () => {
    const id = startIdle('--label', 'a=b', '--network', 'none');
    for (const version of ['1.2.2', '1.4.1']) {
      double.control({ version });
      const printed = double.run('ls', '--format', 'json').stdout;
      expect(printed.includes(String.raw`\/`)).toBe(version === '1.2.2');
      expect(JSON.parse(printed)).toEqual(JSON.parse(double.run('inspect', id).stdout));
      expect(JSON.parse(printed)).toMatchObject([
        { id, configuration: { labels: { a: 'b' }, networks: [] }, status: { state: 'running' } },
      ]);
    }
    double.control({ version: '0.12.3' });
    expect(JSON.parse(double.run('ls', '--format', 'json').stdout)).toMatchObject([{ status: 'running' }]);
    double.control({ version: '1.2.2' });
    double.run('rm', '-f', id);
    expect(double.run('ls', '-a', '--format', 'json').stdout).toBe('[]\n');
  });

  test('[MC-13] with the services down, status still tells and all others say how to start them', () => {
    double.control({ services: 'unregistered' });
    const status = double.run('system', 'status', '--format', 'json');
    expect([status.code, (JSON.parse(status.stdout) as { status: string }).status]).toEqual([
      1,
      'unregistered',
    ]);
    for (const words of [
      ['ls'],
      ['run', IMAGE],
      ['rm', 'x'],
      ['image', 'inspect', IMAGE],
      ['exec', 'x', 'y'],
      ['stop', 'x'],
    ]) {
      const { code, stderr } = double.run(...words);
      expect({ words, code, stderr }).toEqual({
        words,
        code: 1,
        stderr: expect.stringMatching(/XPC connection error[\s\S]*`container system start`/) as string,
      });
    }
    expect(double.run('system', 'start').stderr).toBe('Error: failed to read user input\n');
    expect(double.run('system', 'start', '--enable-kernel-install').code).toBe(0);
    expect(double.run('system', 'status').code).toBe(0);
  });

  test('[MC-13] a scheme that is guessed is gone from 1.3 on', () => {
    const pull = ['image', 'pull', '--scheme', 'auto', 'somewhere:1'];
    expect(double.run(...pull).code).toBe(0);
    double.control({ version: '1.3.0' });
    expect(double.run(...pull)).toMatchObject({ code: 1, stderr: 'Error: unsupported scheme auto\n' });
    double.control({ version: '1.2.2' });
  });

  test('[MC-13] a build below a link finds nothing to copy', () => {
    writeFileSync(join(folder, 'Dockerfile'), `ARG BASE=${IMAGE}\nFROM \${BASE}\nCOPY file /file\n`);
    const link = `${folder}-link`;
    symlinkSync(folder, link);
    try {
      expect(double.run('build', '-t', 'built', link)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('"/file": not found') as string,
      });
      expect(double.run('build', '-t', 'built', folder)).toMatchObject({ code: 0, stdout: 'built:latest\n' });
    } finally {
      rmSync(link);
    }
  });
});
