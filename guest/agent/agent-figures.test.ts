import { expect, test } from 'vitest';
import { describeThatNeeds } from '../../test/support/needs.ts';
import type { Command } from './command.ts';
import { whyNoAgent, withAgent } from './harness.ts';

const MB = 1_000_000;
const describeAgent = describeThatNeeds(whyNoAgent());

/** Asks until the figure is as large as expected; the test's own time is the bound. */
async function untilAtLeast(command: Command, name: string, least: number): Promise<number> {
  for (;;) {
    const { [name]: value = 0 } = await command.usage();
    if (value >= least) return value;
  }
}

/** Holds so many megabytes, really touched, until its input ends. */
const hold = (megabytes: number): string =>
  `perl -e '$held = "x" x ${megabytes}_000_000; $| = 1; print "up\\n"; <STDIN>'`;

/** Works for a fifth of a second of CPU time. */
const work = `perl -e 'until ($spent > 0.2) { 1 for 1 .. 10_000; ($user, $system) = times; $spent = $user + $system }'`;

describeAgent('figures', () => {
  test('[CX-10] CPU time is that of the command, also while another one runs', () =>
    withAgent(async (agent) => {
      const idle = agent.sh('echo up; read -r line');
      const busy = agent.sh('while :; do :; done');
      await idle.says('up');
      const spent = await untilAtLeast(busy, 'cpu_us', 300_000);
      const { cpu_us: idling } = await idle.usage();
      expect(idling).toBeLessThan(100_000);
      const { figures } = await busy.kill().result;
      expect(figures['cpu_us']).toBeGreaterThanOrEqual(spent);
      expect((await idle.write('\n').result).figures['cpu_us']).toBeLessThan(100_000);
    }));

  test('[CX-10] CPU time of children that have ended is on the last bill', () =>
    withAgent(async (agent) => {
      const { figures } = await agent.sh(`${work}; ${work} & wait`).result;
      expect(figures['cpu_us']).toBeGreaterThanOrEqual(400_000);
      expect(figures['cpu_us']).toBeLessThan(1_000_000);
    }));

  test('[CX-10] memory is that of the command', () =>
    withAgent(async (agent) => {
      const [large, small] = [agent.sh(hold(100)), agent.sh(hold(1))];
      await Promise.all([large.says('up'), small.says('up')]);
      const { rss } = await large.usage();
      expect(rss).toBeGreaterThanOrEqual(100 * MB);
      expect(rss).toBeLessThan(250 * MB);
      expect((await small.usage())['rss']).toBeLessThan(30 * MB);
      expect((await large.closeStdin().result).figures['rss']).toBeGreaterThanOrEqual(100 * MB);
      expect((await small.closeStdin().result).figures['rss']).toBeLessThan(30 * MB);
    }));

  test('[CX-10] memory of several processes counts together, and what they share once', () =>
    withAgent(async (agent) => {
      // A shell gives the background no input unless it is told to.
      const command = agent.sh(`exec 3<&0; for child in 1 2 3; do ${hold(40)} <&3 & done; wait`);
      await command.until(({ stdout }) => stdout.toString().split('up').length > 3);
      const { rss } = await command.usage();
      expect(rss).toBeGreaterThanOrEqual(120 * MB);
      expect(rss).toBeLessThan(250 * MB);
      expect((await command.closeStdin().result).figures['rss']).toBeGreaterThanOrEqual(40 * MB);
    }));

  test('[CX-10] memory that was held for a while is on the last bill, though it was given back', () =>
    withAgent(async (agent) => {
      const script = `for child in 1 2 3; do perl -e '$held = "x" x 40_000_000; sleep 1' & done; wait`;
      const { figures } = await agent.sh(script).result;
      expect(figures['rss']).toBeGreaterThanOrEqual(120 * MB);
    }));

  test('[CX-10] figures are numbers and nothing else, and each is there', () =>
    withAgent(async (agent) => {
      const { words, figures } = await agent.run(['true']).result;
      expect(words).toMatch(/^([a-z_]+=\d+ )*[a-z_]+=\d+$/);
      expect(Object.keys(figures)).toEqual(expect.arrayContaining(['cpu_us', 'full', 'rss', 'wait']));
      expect(figures['full']).toBeLessThanOrEqual(100);
    }));

  test('[CX-10] CPU time of a command that is alone is that of all its processes', () =>
    withAgent(async (agent) => {
      const { figures } = await agent.sh(`${work} & wait; ${work}`, { alone: true }).result;
      expect(figures['cpu_us']).toBeGreaterThanOrEqual(400_000);
    }));
});
