import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeThatNeeds } from '../../test/support/needs.ts';
import { Agent, whyNoAgent, withAgent } from './harness.ts';

const KiB = 1024;
const CREDIT = 256 * KiB;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-agent-'));
  chmodSync(folder, 0o777);
});
afterAll(() => rmSync(folder, { recursive: true }));

const describeAgent = describeThatNeeds(whyNoAgent());

describeAgent('a command', () => {
  test('[CX-04] has two streams, apart and with every byte', () =>
    withAgent(async (agent) => {
      const print = (stream: string) => `print ${stream} map { chr } 0 .. 255;`;
      const { stdout, stderr, exitCode } = await agent.run([
        'perl',
        '-e',
        `binmode $_ for *STDOUT, *STDERR; ${print('STDOUT')} ${print('STDERR')} print STDERR "!"`,
      ]).result;
      const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      expect({ stdout, stderr, exitCode }).toEqual({
        stdout: all,
        stderr: Buffer.concat([all, Buffer.from('!')]),
        exitCode: 0,
      });
    }));

  test('[CX-12] reads its input to the end, a megabyte of it', () =>
    withAgent(async (agent) => {
      const input = randomBytes(1024 * KiB);
      const command = agent.run(['cat']);
      for (let at = 0; at < input.length; at += 100_000) command.write(input.subarray(at, at + 100_000));
      command.closeStdin();
      const { stdout } = await command.result;
      expect(stdout.equals(input)).toBe(true);
    }));

  test('that does not want its input does not stop the agent', () =>
    withAgent(async (agent) => {
      const deaf = agent.sh('exec <&-; echo deaf; sleep 1000');
      await deaf.says('deaf');
      deaf.write(Buffer.alloc(500 * KiB)).closeStdin();
      const full = agent.sh('echo full; sleep 1000');
      full.write(Buffer.alloc(500 * KiB));
      expect((await agent.sh('echo fine').result).stdout.toString()).toBe('fine\n');
      await Promise.all([deaf.kill().result, full.kill().result]);
    }));

  test.each([
    ['exit 0', 0, 0],
    ['exit 7', 7, 0],
    ['exit 255', 255, 0],
    ['kill -TERM $$', 0, 15],
    ['kill -KILL $$', 0, 9],
    ['kill -SEGV $$', 0, 11],
  ])('[CX-04] that ends with %s', (script, exitCode, signal) =>
    withAgent(async (agent) => {
      expect(await agent.sh(script).result).toMatchObject({ type: 'X', exitCode, signal });
    }),
  );

  test.each([
    ['is not there', ['/nonexistent'], 127, '/nonexistent: No such file or directory\n'],
    ['is not in the path', ['no-such-program'], 127, 'no-such-program: No such file or directory\n'],
    ['is no program', ['/etc/passwd'], 126, '/etc/passwd: Permission denied\n'],
    ['is a folder', ['/etc'], 126, '/etc: Permission denied\n'],
  ])('[CX-11] that %s ends as in a shell', (_what, argv, exitCode, words) =>
    withAgent(async (agent) => {
      const { stderr, ...end } = await agent.run(argv).result;
      expect({ type: end.type, exitCode: end.exitCode, words: stderr.toString() }).toEqual({
        type: 'X',
        exitCode,
        words,
      });
    }),
  );

  test('is started in its folder, or not at all', () =>
    withAgent(async (agent) => {
      expect((await agent.run(['pwd'], { cwd: folder }).result).stdout.toString()).toBe(`${folder}\n`);
      const { exitCode, stderr } = await agent.run(['pwd'], { cwd: '/nonexistent' }).result;
      expect([exitCode, stderr.toString()]).toEqual([127, '/nonexistent: No such file or directory\n']);
    }));

  test('has its variables beside those of the cell, and takes no others with it', () =>
    withAgent(
      async (agent) => {
        const first = await agent.run(['env'], { env: { ADDED: 'a=b c', HOME: '/elsewhere', EMPTY: '' } })
          .result;
        expect(first.stdout.toString().trim().split('\n').toSorted()).toEqual([
          'ADDED=a=b c',
          'BASE=base',
          'EMPTY=',
          'HOME=/elsewhere',
          'PATH=/usr/local/bin:/usr/bin:/bin',
        ]);
        const second = await agent.run(['env']).result;
        expect(second.stdout.toString()).not.toContain('ADDED');
      },
      { env: { BASE: 'base' } },
    ));

  test('has words with anything in them, also none', () =>
    withAgent(async (agent) => {
      const { stdout } = await agent.run(['printf', '[%s]', '', 'a b', "'\n$x", 'é']).result;
      expect(stdout.toString()).toBe("[][a b]['\n$x][é]");
    }));

  test('[CX-03] finds its file, which is gone afterwards', () =>
    withAgent(async (agent) => {
      const touch = join(folder, 'exec_1.lua');
      expect((await agent.run(['cat', touch], { touch }).result).stdout.toString()).toBe('\n');
      expect(existsSync(touch)).toBe(false);
      const taken = await agent.sh(`rm ${touch}`, { touch }).result;
      expect(taken.exitCode).toBe(0);
    }));

  test('[CX-03] whose file cannot be made is not started', () =>
    withAgent(async (agent) => {
      const end = await agent.sh(`touch ${folder}/started`, { touch: '/nonexistent/file' }).result;
      expect(end).toMatchObject({ type: 'F', words: '/nonexistent/file: No such file or directory' });
      expect(existsSync(join(folder, 'started'))).toBe(false);
    }));

  test('[CX-04] loses nothing of what it said last', () =>
    withAgent(async (agent) => {
      for (let count = 0; count < 20; count++) {
        const { stdout, stderr } = await agent.sh('head -c 60000 /dev/zero; printf err >&2').result;
        expect([stdout.length, stderr.toString()]).toEqual([60_000, 'err']);
      }
    }));

  test('[CX-12] that is alone takes the agent with it, and all that it left behind', async () => {
    const agent = await Agent.start();
    const { stdout, exitCode } = await agent.sh('setsid sleep 1000 & echo done; exit 3', { alone: true })
      .result;
    expect([stdout.toString(), exitCode, await agent.closed, agent.words]).toEqual(['done\n', 3, 0, '']);
  });
});

describeAgent('two commands at once', () => {
  test('[CX-12] do not mix', () =>
    withAgent(async (agent) => {
      const echo = (name: string) => agent.sh(`while read -r line; do echo "${name} $line"; done`);
      const [one, other] = [echo('one'), echo('other')];
      for (let count = 0; count < 100; count++) {
        one.write(`${count}\n`);
        other.write(`${count}\n`);
      }
      const ends = await Promise.all([one.closeStdin().result, other.closeStdin().result]);
      const lines = (name: string) =>
        Array.from({ length: 100 }, (_, count) => `${name} ${count}\n`).join('');
      expect(ends.map(({ stdout }) => stdout.toString())).toEqual([lines('one'), lines('other')]);
    }));

  test.each(['first', 'second'])('[CX-12] the %s sees the end of its input while the other runs', (which) =>
    withAgent(async (agent) => {
      const [first, second] = [agent.run(['cat']), agent.run(['cat'])];
      const [ending, staying] = which === 'first' ? [first, second] : [second, first];
      await Promise.all([first.write('x').says('x'), second.write('x').says('x')]);
      await ending.closeStdin().result;
      await staying.write('y').says('xy');
      await staying.closeStdin().result;
    }),
  );

  test('[CX-12] the end of one is told while the other runs', () =>
    withAgent(async (agent) => {
      const ending = agent.sh('echo up; read -r line');
      await ending.says('up');
      const staying = agent.sh('echo up; read -r line');
      await staying.says('up');
      expect((await ending.write('\n').result).exitCode).toBe(0);
      expect(staying.isEnded).toBe(false);
      await staying.write('\n').result;
    }));

  test('[CX-08] more than there are descriptors for are refused, and the others go on', () =>
    withAgent(
      async (agent) => {
        const commands = Array.from({ length: 20 }, () => agent.run(['cat']));
        for (const command of commands) command.write('x').closeStdin();
        const ends = await Promise.all(commands.map(({ result }) => result));
        const refused = ends.filter(({ type }) => type === 'F');
        expect(refused.length).toBeGreaterThan(0);
        expect(refused.length).toBeLessThan(20);
        expect([...new Set(refused.map(({ words }) => words))]).toEqual(['streams: Too many open files']);
        const served = ends.filter(({ type }) => type === 'X');
        expect(served.every(({ stdout }) => stdout.toString() === 'x')).toBe(true);
      },
      { limits: ['--nofile=40'] },
    ));

  test('many in a row cost no descriptors', () =>
    withAgent(
      async (agent) => {
        for (let count = 0; count < 60; count++)
          expect(await agent.run(['true']).result).toMatchObject({ type: 'X', exitCode: 0 });
      },
      { limits: ['--nofile=24'] },
    ));
});

describeAgent('credit', () => {
  const flood = ['perl', '-e', '$| = 1; print "x" x 8192 while 1'];

  test('[CX-06] a flood stops where it ends, and goes on by as much as is granted', () =>
    withAgent(async (agent) => {
      const command = agent.run(flood, { grants: false });
      await command.until(({ received }) => received >= CREDIT);
      for (const grant of [0, 1, 100_000]) {
        const before = command.received;
        command.grant(grant);
        await command.until(({ received }) => received >= before + grant);
        // The agent has looked at all streams many times before this is through.
        await agent.run(['true']).result;
        expect(command.received).toBe(before + grant);
      }
      expect(command.received).toBe(CREDIT + 100_001);
      await command.kill().result;
    }));

  test('[CX-06] both streams have one account', () =>
    withAgent(async (agent) => {
      const command = agent.sh('head -c 300000 /dev/zero & head -c 300000 /dev/zero >&2; wait', {
        grants: false,
      });
      await command.until(({ received }) => received >= CREDIT);
      await agent.run(['true']).result;
      expect(command.received).toBe(CREDIT);
      command.grant(600_000);
      const { stdout, stderr } = await command.result;
      expect([stdout.length, stderr.length]).toEqual([300_000, 300_000]);
    }));

  test('[CX-04] what is left in the pipe when the program has ended waits for it', () =>
    withAgent(async (agent) => {
      const path = join(folder, 'ended');
      const command = agent.sh(`head -c ${CREDIT + 50_000} /dev/zero; printf err >&2; echo >${path}`, {
        grants: false,
      });
      await command.until(({ received }) => received >= CREDIT);
      while (!existsSync(path)) await nextTurn();
      await agent.run(['true']).result;
      expect([command.received, command.isEnded]).toEqual([CREDIT, false]);
      command.grant(50_000);
      // One more than there is: an end is only seen by who may read.
      command.grant(4);
      const { stdout, stderr } = await command.result;
      expect([stdout.length, stderr.toString()]).toEqual([CREDIT + 50_000, 'err']);
    }));
});

describeAgent('frames', () => {
  test.each([1, 2, 7, 1000])('cut into pieces of %i bytes are understood', (size) =>
    withAgent(async (agent) => {
      const input = randomBytes(300);
      // Grants of ours would come between the pieces.
      const [one, other] = [agent.plan({ grants: false }), agent.plan({ grants: false })];
      const bytes = Buffer.concat([
        one.toStart(['cat']),
        other.toStart(['sh', '-c', 'exit 4']),
        one.toInput(input),
        one.toEnd(),
      ]);
      for (let at = 0; at < bytes.length; at += size) {
        agent.send(bytes.subarray(at, at + size));
        await nextTurn();
      }
      const ends = await Promise.all([one.result, other.result]);
      expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 4]);
      expect(ends[0].stdout.equals(input)).toBe(true);
    }),
  );

  test('about commands that there are not change nothing', () =>
    withAgent(async (agent) => {
      const ghost = agent.plan();
      agent.send(Buffer.concat([ghost.toInput(Buffer.from('x')), ghost.toEnd(), ghost.toKill()]));
      ghost.grant(5);
      expect((await agent.sh('exit 5').result).exitCode).toBe(5);
    }));
});
