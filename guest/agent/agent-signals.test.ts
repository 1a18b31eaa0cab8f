import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeThatNeeds } from '../../test/support/needs.ts';
import { Agent, whyNoAgent, withAgent } from './harness.ts';

/**
 * Perl runs a handler of a signal only between its own operations. One that comes after the last look and before the
 * system call that waits is noticed when the call returns, which may be never. These modules make that moment long.
 */
const MODULES = {
  LateSelect: `*CORE::GLOBAL::select = sub {
    CORE::select($_[0], $_[1], $_[2], (scalar CORE::select(undef, undef, undef, $$ == 1 ? 0.3 : 0), $_[3])[1]);
  };`,
  LateWait: `my $waits;
  *CORE::GLOBAL::waitpid = sub {
    CORE::waitpid($_[0], (scalar CORE::select(undef, undef, undef, $$ == 1 || $waits++ ? 0 : 1), $_[1])[1]);
  };`,
};

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-agent-'));
  chmodSync(folder, 0o755);
  for (const [name, code] of Object.entries(MODULES))
    writeFileSync(join(folder, `${name}.pm`), `BEGIN { ${code} }\n1;\n`, { mode: 0o644 });
});
afterAll(() => rmSync(folder, { recursive: true }));

const describeAgent = describeThatNeeds(whyNoAgent());

function withModule(name: keyof typeof MODULES): { env: Record<string, string> } {
  return { env: { PERL5OPT: `-I${folder} -M${name}` } };
}

describeAgent('a signal that comes just before the agent waits', () => {
  test('[CX-04] tells of the end of a program that is alone', async () => {
    const agent = await Agent.start(withModule('LateSelect'));
    // The end of the last stream wakes the agent, and the end of the program comes when it is about to wait again.
    const script = 'exec 2>&-; echo 42; sleep 1; exec >&-; sleep 0.1; exit 7';
    const { stdout, exitCode } = await agent.sh(script, { alone: true }).result;
    expect([stdout.toString(), exitCode]).toEqual(['42\n', 7]);
    expect(await agent.closed).toBe(0);
  });

  test('[CX-05] kills', () =>
    withAgent(async (agent) => {
      const command = agent.sh('echo up; exec sleep 1000');
      await command.says('up');
      expect(await command.kill().result).toMatchObject({ type: 'X', signal: 9 });
    }, withModule('LateWait')));

  test('[CX-05] asks to end', () =>
    withAgent(async (agent) => {
      const command = agent.sh('echo up; exec sleep 1000');
      await command.says('up');
      expect(await command.terminate().result).toMatchObject({ type: 'X', signal: 15 });
    }, withModule('LateWait')));
});

describeAgent('a program', () => {
  test.each([false, true])('has no signal blocked or ignored by the agent (alone: %s)', async (alone) => {
    const agent = await Agent.start();
    const { stdout } = await agent.run(['grep', '-E', '^Sig(Blk|Ign)', '/proc/self/status'], { alone })
      .result;
    expect(stdout.toString().match(/[0-9a-f]{16}/g)).toEqual(['0'.repeat(16), '0'.repeat(16)]);
    await agent.end();
  });
});
