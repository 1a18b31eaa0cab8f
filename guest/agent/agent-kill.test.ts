import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
} from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeThatNeeds, isRoot, testThatNeeds } from '../../test/support/needs.ts';
import type { Command } from './command.ts';
import { Agent, whyNoAgent, withAgent } from './harness.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-agent-'));
  chmodSync(folder, 0o777);
});
afterAll(() => rmSync(folder, { recursive: true }));

const describeAgent = describeThatNeeds(whyNoAgent());

/** Somebody who must not notice anything. */
async function startNeighbour(agent: Agent): Promise<Command> {
  const neighbour = agent.run(['cat']);
  await neighbour.write('first ').says('first ');
  return neighbour;
}

async function expectUnharmed(neighbour: Command): Promise<void> {
  const { stdout, exitCode } = await neighbour.write('last').closeStdin().result;
  expect([stdout.toString(), exitCode]).toEqual(['first last', 0]);
}

describeAgent('a kill', () => {
  test.each([
    ['one process', 'echo up; exec sleep 1000', 1],
    ['a group', 'sleep 1000 & sleep 1000 & echo up; wait', 3],
    ['a session of its own', 'setsid sleep 1000 & echo up; wait', 2],
    [
      'a daemon',
      '(setsid sh -c "sleep 1000 & sleep 1000" >/dev/null 2>&1 &); sleep 0.1; echo up; sleep 1000',
      5,
    ],
    ['who ignores signals', 'trap "" TERM HUP INT USR1; sleep 1000 & echo up; wait', 2],
    ['who is stopped', 'sleep 1000 & kill -STOP $!; echo up; kill -STOP $$', 2],
    ['who stops its supervisor', 'kill -STOP $PPID; echo up; sleep 1000', 2],
    ['who has closed its streams', 'echo up; exec >&- 2>&- <&-; sleep 1000', 2],
  ])('[CX-05] ends %s, and nobody else', (_what, script, count) =>
    withAgent(async (agent) => {
      const neighbour = await startNeighbour(agent);
      // With a job, and not before it has come: who only waits for one is woken when he is stopped.
      const command = agent.sh(`read job; ${script}`).write('job\n');
      await command.says('up');
      let seen: string[] = [];
      // Stopped and daemonised ones need a moment to get there.
      while (seen.length < count + 1) seen = await agent.processes();
      expect(seen).toHaveLength(count + 1);
      expect(await command.kill().result).toMatchObject({ type: 'X', signal: 9 });
      expect(await agent.processes()).toEqual(['cat']);
      await expectUnharmed(neighbour);
    }),
  );

  testThatNeeds(isRoot ? undefined : 'a fork bomb needs a user of its own, and so root')(
    '[CX-05] ends who forks without end, and nobody else',
    () =>
      withAgent(
        async (agent) => {
          const neighbour = await startNeighbour(agent);
          const bomb = agent.run([
            'perl',
            '-e',
            '$| = 1; while (1) { if (!defined fork && !$said++) { print "full\\n" } }',
          ]);
          await bomb.until(({ stdout }) => stdout.toString().split('full').length > 20);
          expect(await bomb.kill().result).toMatchObject({ type: 'X', signal: 9 });
          expect(await agent.processes()).toEqual(['cat']);
          await expectUnharmed(neighbour);
        },
        { limits: ['--nproc=60'] },
      ),
  );

  test('[CX-05] right after the start leaves nothing, however early it comes', () =>
    withAgent(async (agent) => {
      const neighbour = await startNeighbour(agent);
      for (let count = 0; count < 25; count++) {
        const command = agent.plan();
        agent.send(
          Buffer.concat([command.toStart(['sh', '-c', 'setsid sleep 1000 & sleep 1000']), command.toKill()]),
        );
        expect(['X', 'L']).toContain((await command.result).type);
      }
      expect(await agent.processes()).toEqual(['cat']);
      await expectUnharmed(neighbour);
    }));

  test('[CX-05] does not wait for somebody to take the output', () =>
    withAgent(async (agent) => {
      const flood = agent.run(['perl', '-e', '$| = 1; print "x" x 8192 while 1'], { grants: false });
      await flood.until(({ received }) => received >= 256 * 1024);
      expect(await flood.kill().result).toMatchObject({ type: 'X', signal: 9 });
    }));

  test('[CX-05] of who has ended by itself, with output that nobody takes, keeps its exit code', () =>
    withAgent(async (agent) => {
      const path = join(folder, 'ended');
      const command = agent.sh(`head -c ${256 * 1024 + 50_000} /dev/zero; echo >${path}; exit 3`, {
        grants: false,
      });
      await command.until(({ received }) => received >= 256 * 1024);
      while (!existsSync(path)) await agent.run(['true']).result;
      while ((await agent.processes()).length > 0);
      expect(command.isEnded).toBe(false);
      expect(await command.kill().result).toMatchObject({ type: 'X', exitCode: 3 });
    }));

  test('[CX-05] of who is alone ends the agent, too', async () => {
    const agent = await Agent.start();
    const command = agent.sh('setsid sleep 1000 & echo up; wait', { alone: true });
    await command.says('up');
    expect(await command.kill().result).toMatchObject({ type: 'X', signal: 9 });
    expect(await agent.closed).toBe(0);
  });

  test('[CX-05] keeps what was said before it', () =>
    withAgent(async (agent) => {
      const command = agent.sh('echo partial; echo words >&2; sleep 1000');
      await command.until(({ received }) => received === 14);
      const { stdout, stderr } = await command.kill().result;
      expect([stdout.toString(), stderr.toString()]).toEqual(['partial\n', 'words\n']);
    }));
});

describeAgent('a program that ends', () => {
  test('[CX-05] takes with it what it started in the background, before its end is told', () =>
    withAgent(async (agent) => {
      const neighbour = await startNeighbour(agent);
      const { exitCode, stdout } = await agent.sh('(setsid sleep 1000 &); sleep 1000 & echo done; exit 2')
        .result;
      expect([exitCode, stdout.toString()]).toEqual([2, 'done\n']);
      expect(await agent.processes()).toEqual(['cat']);
      await expectUnharmed(neighbour);
    }));
});

describeAgent('a program that stops itself', () => {
  test.each([false, true])('[CX-04] has not ended (alone: %s)', async (alone) => {
    const agent = await Agent.start();
    const script = '(sleep 0.2; kill -CONT $$) & echo up; kill -STOP $$; echo back; exit 5';
    const { stdout, exitCode } = await agent.sh(script, { alone }).write('job\n').result;
    expect([stdout.toString(), exitCode]).toEqual(['up\nback\n', 5]);
    await agent.end();
  });
});

describeAgent('a supervisor that is killed', () => {
  test('[CX-16] is a loss, and its orphans are gone; nobody else notices', () =>
    withAgent(async (agent) => {
      const neighbour = await startNeighbour(agent);
      const touch = join(folder, 'lost.lua');
      const lost = agent.sh('setsid sleep 1000 & (setsid sleep 1000 &); kill -KILL $PPID; sleep 1000', {
        touch,
      });
      expect(await lost.result).toMatchObject({ type: 'L', words: '' });
      expect(await agent.processes()).toEqual(['cat']);
      expect(existsSync(touch)).toBe(false);
      await expectUnharmed(neighbour);
    }));

  test('[CX-16] is a loss for nobody when it is only stopped: it goes on', () =>
    withAgent(async (agent) => {
      const { type, exitCode } = await agent.sh('kill -STOP $PPID; exit 6').result;
      expect([type, exitCode]).toEqual(['X', 6]);
    }));

  test('[CX-05] cannot be stopped so that a kill fails', () =>
    withAgent(async (agent) => {
      const command = agent.sh('kill -STOP $PPID; echo up');
      await command.says('up');
      expect((await command.kill().result).type).toBe('X');
      expect(await agent.processes()).toEqual([]);
    }));
});

describeAgent('the end of the input', () => {
  test('[SC-02] ends the agent and everything with it', async () => {
    const agent = await Agent.start();
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', ['-m', '666', fifo]);
    const end = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      // Whoever holds the other end of the FIFO lives.
      const hold = `exec 9>${fifo}; trap "" TERM HUP; echo up`;
      const commands = [
        agent.sh(`${hold}; sleep 1000`),
        agent.sh(`(setsid sh -c '${hold}; sleep 1000' &); ${hold}; exec sleep 1000`),
      ];
      await Promise.all(commands.map((command) => command.says('up')));
      expect(() => readSync(end, Buffer.alloc(1))).toThrow('EAGAIN');
      expect(await agent.end()).toBe(0);
      expect(readSync(end, Buffer.alloc(1))).toBe(0);
    } finally {
      closeSync(end);
    }
  });
});
