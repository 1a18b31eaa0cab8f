import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { describeThatNeeds } from '../../test/support/needs.ts';
import type { Ending, StartOptions } from './command.ts';
import { whyNoAgent, withAgent, type Agent } from './harness.ts';

const SESSION = join(dirname(import.meta.dirname), 'session.bash');
const describeAgent = describeThatNeeds(whyNoAgent());

let folder = '';
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'hotcell-agent-')));
  chmodSync(folder, 0o777);
  mkdirSync(join(folder, 'a'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** As a session runs its commands. */
function inSession(agent: Agent, script: string, options: StartOptions = {}): Promise<Ending> {
  const { env } = options;
  return agent.run(['bash', '-c', script], {
    cwd: folder,
    fallback: folder,
    ...options,
    env: { BASH_ENV: SESSION, ...env },
  }).result;
}

describeAgent('the folder that a command ends in', () => {
  test.each([
    ['is where it began', 'true', ''],
    ['is where it went', 'cd a && ls', '/a'],
    ['is where pushd went', 'pushd a >/dev/null', '/a'],
    ['is not where only a subshell went', '( cd a; pwd )', ''],
    ['is not where only a child went', 'bash -c "cd a"', ''],
    ['is where it was at an exit in the middle', 'cd a; exit 3; cd ..', '/a'],
    ['is where it was when a command failed', 'cd a; false', '/a'],
    ['is where it was when it gave up', 'set -e; cd a; false; cd ..', '/a'],
    ['is where it was when a signal ended it', 'cd a; kill -TERM $$; sleep 1000', '/a'],
    ['may have blanks, quotes and a newline in its name', `mkdir -p $'x  "y\\n z'; cd x*`, '/x  "y\n z'],
    ['may have other letters in its name', 'mkdir é😀; cd é😀', '/é😀'],
    ['may be gone by then', 'mkdir b; cd b; rmdir ../b', '/b'],
  ])('[RS-03] %s', (_what, script, place) =>
    withAgent(async (agent) => {
      expect((await inSession(agent, script)).place).toBe(folder + place);
    }),
  );

  test.each([
    ['becomes another program', 'cd a; exec true'],
    ['has an end of its own', 'cd a; trap "echo mine" EXIT'],
    ['is killed', 'cd a; kill -KILL $$'],
    ['closes the descriptor', 'cd a; exec 19>&-'],
  ])('[RS-03] is not told by a shell that %s, and nothing else comes of it', (_what, script) =>
    withAgent(async (agent) => {
      const { place, stderr } = await inSession(agent, script);
      expect([place, stderr.toString()]).toEqual([undefined, '']);
    }),
  );

  test('[RS-02, RS-03] is told beside output, exit code and variables, none of which it changes', () =>
    withAgent(async (agent) => {
      const script = 'cd a; echo "[$BASH_ENV]"; env | grep -c BASH; echo err >&2; exit 9';
      const { stdout, stderr, exitCode, place } = await inSession(agent, script);
      expect([stdout.toString(), stderr.toString(), exitCode, place]).toEqual([
        '[]\n0\n',
        'err\n',
        9,
        join(folder, 'a'),
      ]);
    }));

  test.each([
    ['pipes', {}],
    ['a terminal', { terminal: '24 80' }],
  ])('[RS-03, SC-02] is told on a descriptor that programs do not have, with %s', (_what, options) =>
    withAgent(async (agent) => {
      const look = 'echo $(ls /proc/self/fd)';
      const below = `${look}; bash -c '${look}'; ( ${look} ); { ${look}; } | cat; ${look} & wait`;
      const seen = ({ stdout }: Ending): string[] => [...new Set(stdout.toString().trim().split(/\r?\n/))];
      // Outside of a session nobody has it.
      const plain = seen(await agent.run(['bash', '-c', look], options).result);
      const normal = await inSession(agent, `cd a; ${below}`, options);
      expect([seen(normal), normal.place]).toEqual([plain, join(folder, 'a')]);
      expect(seen(await inSession(agent, `exec bash -c '${look}'`, options))).toEqual(plain);
    }),
  );

  test('[RS-03] is not asked of a command without a place to fall back to', () =>
    withAgent(async (agent) => {
      const { place, stderr } = await inSession(agent, 'cd a', { fallback: '' });
      expect([place, stderr.toString()]).toEqual([undefined, '']);
    }));

  test('[RS-06, SC-03] is at most 8 KiB, whatever a program writes there, and nobody waits for it', () =>
    withAgent(async (agent) => {
      const flood = await inSession(agent, 'head -c 1000000 /dev/zero >&19 & sleep 0.2');
      expect([flood.exitCode, flood.place?.length]).toEqual([0, 8192]);
      const exact = await inSession(agent, 'head -c 60000 /dev/zero | tr "\\0" x >&19; trap - EXIT');
      expect(exact.place).toBe('x'.repeat(8192));
      expect((await inSession(agent, 'cd a')).place).toBe(join(folder, 'a'));
    }));

  test('[RS-03] is the own one of each of thirty commands at once', () =>
    withAgent(async (agent) => {
      const names = Array.from({ length: 30 }, (_, at) => `n${at}`);
      const ends = names.map((name) =>
        inSession(agent, `mkdir ${name}; cd ${name}; sleep 0.3; ls /proc/self/fd`),
      );
      const all = await Promise.all(ends);
      expect(all.map(({ place }) => place)).toEqual(names.map((name) => join(folder, name)));
      // Nobody has a stream of somebody else.
      expect(new Set(all.map(({ stdout }) => stdout.toString())).size).toBe(1);
    }));
});

describeAgent('a command whose folder cannot be entered', () => {
  test('[RS-03] begins where it is to fall back to, and says so', () =>
    withAgent(async (agent) => {
      for (const cwd of [join(folder, 'gone'), '/etc/passwd']) {
        const end = await inSession(agent, 'pwd', { cwd });
        expect([end.stdout.toString(), end.figures['moved'], end.place]).toEqual([`${folder}\n`, 1, folder]);
      }
      // The agent can look there and its programs cannot.
      expect((await inSession(agent, 'pwd', { cwd: '/proc/1/root' })).stdout.toString()).toBe(`${folder}\n`);
      const well = await inSession(agent, 'pwd', { cwd: join(folder, 'a') });
      expect([well.stdout.toString(), well.figures['moved']]).toEqual([`${join(folder, 'a')}\n`, undefined]);
    }));

  test('[RS-03] fails when there is nothing to fall back to either', () =>
    withAgent(async (agent) => {
      const end = await inSession(agent, 'pwd', { cwd: join(folder, 'x'), fallback: join(folder, 'y') });
      expect([end.exitCode, end.stdout.length]).toEqual([127, 0]);
    }));
});
