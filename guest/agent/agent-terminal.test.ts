import { expect, test } from 'vitest';
import { describeThatNeeds } from '../../test/support/needs.ts';
import type { Command } from './command.ts';
import { whyNoAgent, withAgent, type Agent } from './harness.ts';

const KiB = 1024;
const CREDIT = 256 * KiB;
const describeAgent = describeThatNeeds(whyNoAgent());
const SIZE = { terminal: '30 90' };

const linesOf = (stdout: Buffer): string[] => stdout.toString().split('\r\n').filter(Boolean);

/** Without an echo, so that what is read is what the program says. */
const quiet = (agent: Agent, script: string): Command => agent.sh(`stty -echo; ${script}`, SIZE);

describeAgent('a terminal', () => {
  test('[TM-01] has its size, a name, and is the one that its program is controlled by', () =>
    withAgent(async (agent) => {
      const script =
        'stty size; tty; ps -o tty= -p $$; : </dev/tty && echo mine; test -t 0 -a -t 1 -a -t 2 && echo all';
      const { stdout, stderr, exitCode } = await agent.sh(script, SIZE).result;
      const [size, name, seen = '', ...rest] = linesOf(stdout);
      expect([size, rest, exitCode, stderr.length]).toEqual(['30 90', ['mine', 'all'], 0, 0]);
      expect(name).toBe(`/dev/${seen.trim()}`);
    }));

  test('[TM-01] that is resized tells its program', () =>
    withAgent(async (agent) => {
      const command = quiet(agent, 'trap "stty size" WINCH; echo up; while :; do read line && exit 0; done');
      await command.says('up');
      command.resize('50 120');
      await command.says('50 120');
      command.resize('nonsense').resize('51 121');
      await command.says('51 121');
      expect((await command.write('\n').result).exitCode).toBe(0);
    }));

  test('[TM-01] passes on Ctrl-C, which interrupts, and E, which is Ctrl-D', () =>
    withAgent(async (agent) => {
      const caught = quiet(agent, 'trap "echo caught; exit 3" INT; echo up; while :; do sleep 0.05; done');
      await caught.says('up');
      expect((await caught.write('\x03').result).exitCode).toBe(3);
      const killed = agent.run(['sh', '-c', 'echo up; exec sleep 1000'], SIZE);
      await killed.says('up');
      expect((await killed.write('\x03').result).signal).toBe(2);
      const reader = quiet(agent, 'echo up; cat; echo end; cat; echo again');
      await reader.says('up');
      reader.write('line\n').closeStdin();
      await reader.says('end');
      const { stdout } = await reader.closeStdin().result;
      expect(linesOf(stdout)).toEqual(['up', 'line', 'end', 'again']);
    }));

  test('[TM-01] makes an interactive shell one with job control', () =>
    withAgent(async (agent) => {
      const shell = agent.run(['bash', '--norc', '-i'], { ...SIZE, env: { PS1: '> ', TERM: 'dumb' } });
      await shell.says('> ');
      shell.write('sleep 1000\n');
      await shell.says('sleep 1000\r\n');
      while (!(await agent.processes()).includes('sleep'));
      shell.write('\x1a');
      await shell.says('Stopped');
      shell.write('jobs; fg\n');
      await shell.until(({ stdout }) => stdout.toString().split('sleep 1000').length > 4);
      // The shell says what it brings to the front before it has: a key that comes too early goes to the shell.
      do shell.write('\x03');
      while ((await agent.processes()).includes('sleep'));
      shell.write('echo $((6 * 7)); exit 5\n');
      const { stdout, exitCode } = await shell.result;
      expect(stdout.toString()).not.toMatch(/no job control|cannot set terminal/);
      expect([stdout.toString().includes('42'), exitCode]).toEqual([true, 5]);
    }));

  test.each([
    ['exit 0', 0, 0],
    ['exit 7', 7, 0],
    ['kill -KILL $$', 0, 9],
  ])('[TM-01] whose program ends with %s', (script, exitCode, signal) =>
    withAgent(async (agent) => {
      expect(await agent.sh(script, SIZE).result).toMatchObject({ type: 'X', exitCode, signal });
    }),
  );

  test('[TM-01] that a child in the background holds does not keep the end waiting', () =>
    withAgent(async (agent) => {
      const { stdout } = await agent.sh('(trap "" HUP; sleep 1000) & setsid sleep 1000 & echo done', SIZE)
        .result;
      expect(linesOf(stdout)).toEqual(['done']);
      expect(await agent.processes()).toEqual([]);
    }));

  test('[RS-06, TM-01] gives its last words whole, also many of them', () =>
    withAgent(async (agent) => {
      for (const size of [1, 4095, 60_000]) {
        for (let count = 0; count < 5; count++) {
          const { stdout } = await agent.sh(`head -c ${size} /dev/zero | tr '\\0' x`, SIZE).result;
          expect(stdout.length).toBe(size);
        }
      }
    }));

  test('[RS-06, TM-01] keeps to the credit and loses nothing by it', () =>
    withAgent(async (agent) => {
      const size = 3 * CREDIT;
      const command = agent.sh(`head -c ${size} /dev/zero | tr '\\0' x; echo end`, {
        ...SIZE,
        grants: false,
      });
      await command.until(({ received }) => received >= CREDIT);
      for (let count = 0; count < 3; count++) await agent.run(['true']).result;
      expect(command.received).toBe(CREDIT);
      command.grant(size);
      const { stdout } = await command.result;
      expect([stdout.length, stdout.subarray(-5).toString()]).toEqual([size + 5, 'end\r\n']);
    }));

  test('[TM-01] that its program has let go of can be opened again', () =>
    withAgent(async (agent) => {
      const script = 'echo one; exec </dev/null >/dev/null 2>&1; sleep 0.3; echo two >/dev/tty';
      expect(linesOf((await agent.sh(script, SIZE).result).stdout)).toEqual(['one', 'two']);
    }));

  test('[RS-12, TM-01] whose command is killed takes all of its session along, and who has left it', () =>
    withAgent(async (agent) => {
      const command = agent.sh('trap "" HUP; sleep 1000 & setsid sleep 1000 & echo up; sleep 1000', SIZE);
      await command.says('up');
      expect((await command.kill().result).signal).toBe(9);
      expect(await agent.processes()).toEqual([]);
    }));

  test('[TM-01] has nothing to do with that of another command', () =>
    withAgent(async (agent) => {
      const reader = 'tty; exec perl -pe "BEGIN { $| = 1; print qq(up\\n) }"';
      const [one, other] = [quiet(agent, reader), quiet(agent, reader)];
      await Promise.all([one.says('up'), other.says('up')]);
      expect(one.stdout.toString()).not.toBe(other.stdout.toString());
      one.write('\x03');
      expect((await one.result).signal).toBe(2);
      await other.write('still\n').says('still');
      await other.closeStdin().result;
    }));
});

describeAgent('a command that is asked to end', () => {
  test('[RS-07] hears of it with all that it has started, also those that have left', () =>
    withAgent(async (agent) => {
      const child = (name: string): string =>
        `sh -c 'trap "mkdir $there/${name}; exit" TERM; echo up ${name}; while :; do sleep 0.02; done'`;
      const command = agent.sh(`
        export there=$(mktemp -d); trap 'asked=1' TERM
        (${child('left')} &); setsid ${child('far')} & ${child('near')} &
        while [ $(ls $there | wc -l) -lt 3 ]; do sleep 0.02; done
        rm -r $there; echo "all asked $asked"`);
      for (const name of ['left', 'far', 'near']) await command.says(`up ${name}\n`);
      const { stdout } = await command.terminate().result;
      expect(stdout.toString()).toContain('all asked 1\n');
    }));

  test('[RS-07] waits for those who take their time, though its shell is gone at once, until it is killed', () =>
    withAgent(async (agent) => {
      const slow = (word: string): string =>
        `sh -c 'trap "sleep 0.3; echo ${word}; exit" TERM; echo up; while :; do sleep 0.02; done'`;
      const command = agent.sh(`${slow('cleaned')} & wait`);
      await command.says('up');
      const { stdout, signal } = await command.terminate().result;
      expect([stdout.toString(), signal]).toEqual(['up\ncleaned\n', 15]);

      const stubborn = agent.sh('sh -c \'trap "" TERM; echo up; while :; do sleep 0.02; done\' & wait');
      await stubborn.says('up');
      stubborn.terminate();
      await agent.sh('sleep 0.2').result;
      expect(stubborn.isEnded).toBe(false);
      expect((await stubborn.kill().result).signal).toBe(15);
      expect(await agent.processes()).toEqual([]);
    }));

  test('[RS-07] and does not care for it stays until it is killed', () =>
    withAgent(async (agent) => {
      const command = agent.sh('trap "" TERM; echo up; while :; do sleep 0.02; done');
      await command.says('up');
      command.terminate();
      await agent.sh('sleep 0.2').result;
      expect(command.isEnded).toBe(false);
      expect((await command.kill().result).signal).toBe(9);
    }));

  test('[RS-07] leaves the others alone', () =>
    withAgent(async (agent) => {
      const [one, other] = [agent.sh('echo up; sleep 1000'), agent.sh('echo up; read line; exit 4')];
      await Promise.all([one.says('up'), other.says('up')]);
      expect((await one.terminate().result).signal).toBe(15);
      expect((await other.write('\n').result).exitCode).toBe(4);
    }));
});
