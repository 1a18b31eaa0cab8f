import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { encodeFrame } from '../../src/lib/frames.ts';
import { parseFigures } from '../../src/drivers/agent/report.ts';
import { describeThatNeeds } from '../../test/support/needs.ts';
import { whyNoAgent, withAgent } from './harness.ts';
import { bytesOf, exitCodeOf, isOver, withLasting } from './lasting-harness.ts';

const describeAgent = describeThatNeeds(whyNoAgent());

describeAgent('the next server', () => {
  test.each(['deaf', 'discarding'] as const)(
    '[RS-22] goes on with a command where its own notes end, and the command has noticed nothing (%s)',
    (how) =>
      withLasting(async (agent, first) => {
        first.sh(1, 'echo one; read line; echo "two $line"; exit 4');
        await first.hears(1, 'one\n');
        agent.hangUp(how);
        const next = agent.connect();
        expect(await next.greet()).toEqual([1]);
        next.send('I', 1, 'word\n');
        next.resume(1, 2);
        const heard = await next.end(1);
        expect([bytesOf(heard).toString(), exitCodeOf(heard)]).toEqual(['e\ntwo word\n', 4]);
      }),
  );

  test('[RS-22] hears nothing of a command before it asks for it', () =>
    withLasting(async (agent, first) => {
      first.sh(1, 'while :; do echo x; sleep 0.01; done');
      await first.hears(1, 'x');
      const next = agent.connect();
      await next.greet();
      // The agent has looked at all streams many times before these are through.
      for (let id = 2; id < 6; id++) await next.run(id, 'sleep 0.05');
      expect(next.ids).toEqual([2, 3, 4, 5]);
      next.resume(1, 0);
      await next.hears(1, 'x');
      next.send('K', 1);
      await next.end(1);
    }));

  test('[RS-22] says the same greeting several times and is answered once', () =>
    withLasting(async (agent) => {
      const next = agent.connect();
      for (let count = 0; count < 5; count++) next.sendRaw(next.greeting ?? Buffer.alloc(0));
      await next.greet();
      expect(await next.run(1, 'echo fine')).toBe('fine\n');
      expect(next.answers).toBe(1);
      next.sendRaw(next.greeting ?? Buffer.alloc(0));
      expect(await next.run(2, 'echo fine')).toBe('fine\n');
      expect(next.answers).toBe(1);
    }));

  test('[RS-22] is followed by others, each with a greeting of its own', () =>
    withLasting(async (agent, first) => {
      first.start(1, ['cat']);
      for (let count = 0; count < 5; count++) {
        const next = agent.connect();
        expect(await next.greet()).toEqual([1]);
        next.resume(1, 2 * count);
        next.send('I', 1, `${count}\n`);
        await next.hears(1, `${count}\n`);
        expect(bytesOf(next.heard(1)).toString()).toBe(`${count}\n`);
      }
    }));

  test('[RS-22] may greet byte by byte', () =>
    withLasting(async (agent, first) => {
      first.start(1, ['cat']);
      const next = agent.connect();
      for (const byte of next.greeting ?? []) {
        next.sendRaw(Buffer.of(byte));
        await nextTurn();
      }
      await next.until(({ inherited }) => inherited !== undefined);
      expect(next.inherited).toEqual([1]);
    }));

  test('[RS-22] whose greeting has a wrong marker is not heard, and the one after it is', () =>
    withLasting(async (agent, first) => {
      first.start(1, ['cat']);
      const wrong = Buffer.from(agent.marker);
      wrong[31] = (wrong[31] ?? 0) ^ 1;
      first.sendRaw(Buffer.concat([wrong, randomBytes(8)]));
      const next = agent.connect();
      expect(await next.greet()).toEqual([1]);
    }));
});

/** What a server may have been saying when it was killed: one frame of every type. */
const FRAMES = ['S', 'I', 'E', 'C', 'T', 'W', 'K', 'D', 'U', 'M', 'Z'].map((type) =>
  encodeFrame(
    type,
    1,
    type === 'S'
      ? Buffer.from(['0', '/tmp', '', '', '', '2', 'sleep', '1'].join('\0'))
      : Buffer.from('12345678'),
  ),
);

describeAgent('what the last server had begun to say', () => {
  test('[RS-22] is forgotten, wherever it breaks off', () =>
    withLasting(async (agent, first) => {
      first.start(1, ['cat']);
      first.send('I', 1, 'x');
      await first.hears(1, 'x');
      let had = 1;
      for (const frame of FRAMES) {
        for (let length = 1; length < frame.length; length++) {
          const next = agent.connect();
          next.sendRaw(frame.subarray(0, length));
          expect(await next.greet()).toEqual([1]);
          next.resume(1, had);
          next.send('I', 1, 'y');
          await next.hears(1, 'y');
          expect(bytesOf(next.heard(1)).toString()).toBe('y');
          had++;
        }
      }
    }));

  test('[RS-22] with an absurd length swallows no greeting', () =>
    withLasting(async (agent) => {
      const next = agent.connect();
      next.sendRaw(Buffer.from('I\0\0\0\x01\xff\xff\xff\xff', 'latin1'));
      await next.greet();
      expect(await next.run(1, 'echo fine')).toBe('fine\n');
    }));

  test('[RS-22] is done as far as it was whole', () =>
    withLasting(async (agent, first) => {
      first.start(1, ['cat']);
      const next = agent.connect();
      const greeting = next.greeting ?? Buffer.alloc(0);
      const whole = encodeFrame('I', 1, Buffer.from('whole '));
      const half = encodeFrame('I', 1, Buffer.from('half')).subarray(0, 11);
      // In one piece, as it is found by an agent that was frozen meanwhile.
      next.sendRaw(Buffer.concat([whole, half, greeting, greeting]));
      await next.until(({ inherited }) => inherited !== undefined);
      next.resume(1, 0);
      next.send('I', 1, 'next');
      await next.hears(1, 'next');
      expect(bytesOf(next.heard(1)).toString()).toBe('whole next');
      expect(next.answers).toBe(1);
    }));
});

describeAgent('a command that nobody has asked for yet', () => {
  test('[RS-12, RS-22] can be killed', () =>
    withLasting(async (agent, first) => {
      first.sh(1, 'echo up; sleep 1000 & sleep 1000');
      await first.hears(1, 'up');
      const next = agent.connect();
      await next.greet();
      next.send('K', 1);
      // No word of it, though it is over.
      while ((await next.run(2, 'ls /proc/[0-9]*/comm | xargs cat 2>/dev/null')).includes('sleep'));
      expect(isOver(next.heard(1))).toBe(false);
      next.resume(1, 3);
      const { last } = await next.end(1);
      expect(parseFigures(last[0]?.payload ?? Buffer.alloc(0)).get('wait')).toBe(9);
    }));

  test('[RS-07, RS-22] can be asked to end, and has input', () =>
    withLasting(async (agent, first) => {
      first.sh(1, 'trap "echo asked; exit 3" TERM; echo up; while :; do sleep 0.02; done');
      first.start(2, ['cat']);
      await first.hears(1, 'up');
      const next = agent.connect();
      await next.greet();
      next.send('T', 1);
      next.send('I', 2, 'input');
      next.send('E', 2);
      next.resume(1, 0);
      next.resume(2, 0);
      const ends = await Promise.all([next.end(1), next.end(2)]);
      expect(ends.map((heard) => [bytesOf(heard, 'O').toString(), exitCodeOf(heard)])).toEqual([
        ['up\nasked\n', 3],
        ['input', 0],
      ]);
    }));
});

describeAgent('a program of a cell that lasts', () => {
  const forged = [...encodeFrame('K', 1)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');

  test('[SC-03, RS-14] cannot speak for the server, nor hear it', () =>
    withLasting(async (agent, first) => {
      first.start(1, ['cat']);
      const attempts = [
        `printf '${forged}' >${agent.fifos}/in`,
        `printf '${forged}' >${agent.fifos}/out`,
        `head -c 1 <${agent.fifos}/in`,
        `head -c 1 <${agent.fifos}/out`,
        `printf '${forged}' >/proc/1/fd/0`,
        'head -c 1 </proc/1/fd/0',
        'head -c 1 </proc/1/mem',
        'cat /proc/1/environ',
      ];
      for (const [at, attempt] of attempts.entries())
        expect(await first.run(at + 2, attempt)).toMatch(/Permission denied/);
      first.send('I', 1, 'fine');
      await first.hears(1, 'fine');
    }, 'fifos'));

  test('[SC-03, RS-14] cannot look for the marker in the agent, nor in the supervisor of a command', () =>
    withLasting(async (agent, first) => {
      const look = 'cat /proc/1/cmdline; for pid in 1 $PPID; do cat /proc/$pid/environ /proc/$pid/mem; done';
      first.sh(1, look);
      const said = bytesOf(await first.end(1));
      expect(said.toString()).toContain('agent.pl');
      expect(said.toString().match(/Permission denied/g)).toHaveLength(4);
      expect(said.includes(agent.marker)).toBe(false);
    }));

  test('[SC-03] that prints a greeting has printed bytes', () =>
    withLasting(async (agent, first) => {
      const next = agent.connect();
      const greeting = [...(next.greeting ?? [])].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`);
      next.sendRaw(encodeFrame('C', 9));
      await next.greet();
      const before = next.answers;
      next.sh(1, `printf '${greeting.join('').slice(0, 8 * 4)}'; exit 2`);
      expect(exitCodeOf(await next.end(1))).toBe(2);
      expect([before, next.answers, first.answers]).toEqual([1, 1, 0]);
    }));
});

describeAgent('an agent that is not to last', () => {
  test('[SC-02] knows no marker, keeps nothing and ends with its input', () =>
    withAgent(async (agent) => {
      const marker = randomBytes(32);
      agent.send(encodeFrame('M', 0, marker));
      const command = agent.sh('cat; exit 6');
      // As input it would be a greeting to an agent that lasts.
      command.write(Buffer.concat([marker, randomBytes(8)])).closeStdin();
      const end = await command.result;
      expect([end.stdout.length, end.exitCode]).toEqual([40, 6]);
      agent.send(encodeFrame('Z', 1, Buffer.from('0')));
      expect((await agent.sh('exit 5').result).exitCode).toBe(5);
      const staying = agent.sh('echo up; sleep 1000');
      await staying.says('up');
      expect(await agent.end()).toBe(0);
    }));
});
