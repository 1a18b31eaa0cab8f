import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { encodeFrame } from '../../src/lib/frames.ts';
import { describeThatNeeds } from '../../test/support/needs.ts';
import { startBelow, whyNoAgent, withAgent } from './harness.ts';

const describeAgent = describeThatNeeds(whyNoAgent());

/** Frames that would say: my neighbour has printed this, and ended well. */
const FORGED = Buffer.concat([
  encodeFrame('O', 1, Buffer.from('forged')),
  encodeFrame('X', 1, Buffer.from('wait=0')),
]);

describeAgent('the agent', () => {
  test('[SC-03] refuses to be anything but PID 1, since its end is that of all it can see', () => {
    const { status, stdout, stderr } = startBelow();
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: 'still here\n',
      stderr: 'agent.pl: not PID 1 of a cell\n',
    });
  });
});

describeAgent('a program, though the same user,', () => {
  test.each([
    ['list the streams of the agent', 'ls /proc/1/fd'],
    ['read its input', 'head -c 1 </proc/1/fd/0'],
    ['write to its output', 'printf x >/proc/1/fd/1'],
    ['write to its complaints', 'printf x >/proc/1/fd/2'],
    ['read its variables', 'cat /proc/1/environ'],
    ['read its memory', 'dd if=/proc/1/mem bs=1 count=1'],
    ['write its memory', 'exec 3>/proc/1/mem'],
    ['list the streams of its supervisor', 'ls /proc/$PPID/fd'],
    ['read the memory of its supervisor', 'dd if=/proc/$PPID/mem bs=1 count=1'],
  ])('[SC-03] cannot %s', (_what, script) =>
    withAgent(async (agent) => {
      const { exitCode, stdout, stderr } = await agent.sh(script).result;
      expect(exitCode).not.toBe(0);
      expect([stdout.toString(), stderr.toString()]).toEqual([
        '',
        expect.stringContaining('Permission denied'),
      ]);
    }),
  );

  test.each(['1', 'getppid()'])('[SC-03] cannot take over process %s as a debugger', (pid) =>
    withAgent(async (agent) => {
      // PTRACE_SEIZE, which does not even stop it.
      const seize = `my $n = qx(uname -m) =~ /aarch64/ ? 117 : 101; my $end = syscall $n, 0x4206, ${pid}, 0, 0; print "$end $!"`;
      expect((await agent.run(['perl', '-e', seize]).result).stdout.toString()).toBe(
        '-1 Operation not permitted',
      );
    }),
  );

  test('[SC-03] inherits three streams and nothing else', () =>
    withAgent(async (agent) => {
      const neighbour = agent.run(['cat']);
      await neighbour.write('x').says('x');
      const { stdout } = await agent.run(['ls', '/proc/self/fd']).result;
      // What we ourselves leave open to every child, and the folder that is being listed.
      expect(stdout.toString()).toBe(execFileSync('ls', ['/proc/self/fd'], { encoding: 'utf8' }));
      await neighbour.closeStdin().result;
    }));

  test('[SC-03] can be looked at by itself, as any other program', () =>
    withAgent(async (agent) => {
      expect(
        (await agent.sh('head -c 4 /proc/self/maps | wc -c; ls /proc/$$/fd >/dev/null').result).exitCode,
      ).toBe(0);
    }));

  test('[SC-03] that prints frames has printed bytes', () =>
    withAgent(async (agent) => {
      const neighbour = agent.run(['cat']);
      const bytes = [...FORGED].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
      const { stdout, stderr } = await agent.sh(`printf '${bytes}'; printf '${bytes}' >&2`).result;
      expect([stdout, stderr]).toEqual([FORGED, FORGED]);
      expect([neighbour.received, neighbour.isEnded]).toEqual([0, false]);
      await neighbour.closeStdin().result;
    }));

  test('[SC-03] cannot end the agent with a signal', () =>
    withAgent(async (agent) => {
      const script =
        'for signal in KILL TERM HUP INT USR1 STOP PIPE SEGV CHLD; do kill -$signal 1; done; echo sent';
      expect((await agent.sh(script).result).stdout.toString()).toBe('sent\n');
      expect((await agent.sh('echo fine').result).stdout.toString()).toBe('fine\n');
    }));

  test('[CX-16] that stops everybody stops nobody who gets input afterwards', () =>
    withAgent(async (agent) => {
      const waiting = agent.sh('echo up; read -r line; echo "got $line"');
      await waiting.says('up');
      // All but itself and PID 1.
      const stopper = agent.sh('kill -STOP -1; echo sent; sleep 1000');
      await stopper.says('sent');
      await stopper.kill().result;
      expect((await waiting.write('it\n').result).stdout.toString()).toBe('up\ngot it\n');
    }));

  test('[CX-09] goes before the agent when memory runs out', () =>
    withAgent(async (agent) => {
      const { stdout } = await agent.sh('cat /proc/self/oom_score_adj /proc/1/oom_score_adj').result;
      expect(stdout.toString()).toBe('500\n0\n');
    }));

  test('[CX-04] starts with the signals of a fresh program', () =>
    withAgent(async (agent) => {
      const { stdout } = await agent.run(['grep', '-E', '^Sig(Blk|Ign)', '/proc/self/status']).result;
      expect(stdout.toString()).toBe(`SigBlk:\t${'0'.repeat(16)}\nSigIgn:\t${'0'.repeat(16)}\n`);
    }));
});
