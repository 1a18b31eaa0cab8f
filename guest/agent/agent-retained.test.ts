import { randomInt } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeThatNeeds } from '../../test/support/needs.ts';
import { whyNoAgent } from './harness.ts';
import {
  bytesOf,
  exitCodeOf,
  isOver,
  withLasting,
  type Heard,
  type LastingAgent,
} from './lasting-harness.ts';

const KiB = 1024;
const CREDIT = 256 * KiB;
const describeAgent = describeThatNeeds(whyNoAgent());

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-agent-'));
  chmodSync(folder, 0o777);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function untilThere(path: string): Promise<void> {
  while (!existsSync(path)) await nextTurn();
}

/** Prints numbered bytes in pieces of every size to both streams, so that whatever is lost, doubled or moved shows. */
const PRINTER = `
  my ($seed, $total) = @ARGV; srand $seed; $| = 1; my %at = (O => 0, e => 0);
  my @sizes = (1, 7, 100, 4096, 65536, 70000);
  while ($at{O} + $at{e} < $total) {
    my ($name, $handle) = rand() < 0.6 ? ('O', *STDOUT) : ('e', *STDERR);
    my $size = 1 + int rand $sizes[rand @sizes];
    my $bytes = join '', map { pack 'C', ($_ * 7 + ($_ >> 8)) & 255 } $at{$name} .. $at{$name} + $size - 1;
    syswrite $handle, $bytes; $at{$name} += $size;
  }`;

const isNumbered = (bytes: Buffer): boolean =>
  bytes.every((byte, at) => byte === ((at * 7 + (at >> 8)) & 255));

/** One server after the other, each killed at some byte, each with notes that end somewhere in what it has heard. */
async function readThroughDeaths(
  agent: LastingAgent,
  first: Heard['output'],
  notedAtFirst: number,
): Promise<Heard> {
  let output = first;
  let noted = notedAtFirst;
  for (;;) {
    const have = output.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const from = noted + randomInt(have - noted + 1);
    output = cutAt(output, from);
    const next = agent.connect();
    await next.greet();
    next.resume(1, from);
    noted = from;
    const heard = next.heard(1);
    const deathAt = randomInt(600 * KiB);
    let seen = 0;
    let kept = 0;
    while (!isOver(heard) && kept < deathAt) {
      await next.until(() => heard.output.length > seen || isOver(heard));
      for (; seen < heard.output.length; seen++) kept += heard.output[seen]?.bytes.length ?? 0;
      const payable = from + kept - noted;
      const paid = randomInt(3) === 0 ? payable : randomInt(payable + 1);
      if (paid > 0 && (randomInt(2) === 0 || payable >= CREDIT / 2)) {
        next.acknowledge(1, paid);
        noted += paid;
      }
    }
    output = [...output, ...heard.output];
    if (isOver(heard) && randomInt(3) > 0) return { output, last: heard.last };
    agent.hangUp(randomInt(2) === 0 ? 'deaf' : 'discarding');
  }
}

function cutAt(output: Heard['output'], length: number): Heard['output'] {
  let left = length;
  const kept: Heard['output'] = [];
  for (const { type, bytes } of output) {
    if (left <= 0) break;
    kept.push({ type, bytes: bytes.subarray(0, left) });
    left -= bytes.length;
  }
  return kept;
}

describeAgent('output', () => {
  test.each([1, 2, 3, 4, 5, 6])(
    '[RS-05, RS-06, RS-22] reaches whoever is there, every byte once and in order, whenever servers die (%i)',
    (seed) =>
      withLasting(
        async (agent, first) => {
          const total = 1_500_000;
          first.start(1, ['perl', '-e', PRINTER, String(seed), String(total)]);
          await first.until((server) => server.heard(1).output.length > 0);
          agent.hangUp(seed % 2 === 0 ? 'deaf' : 'discarding');
          const heard = await readThroughDeaths(agent, first.heard(1).output, 0);
          const [out, err] = [bytesOf(heard, 'O'), bytesOf(heard, 'e')];
          expect([isNumbered(out), isNumbered(err), exitCodeOf(heard)]).toEqual([true, true, 0]);
          expect(out.length + err.length).toBeGreaterThanOrEqual(total);
        },
        seed % 2 === 0 ? 'fifos' : 'pipes',
      ),
  );

  test('[RS-06, RS-22] that nobody acknowledges stops at 256 KiB, also over several servers', () =>
    withLasting(async (agent, first) => {
      first.start(1, ['perl', '-e', 'print "x" x 8192 while 1']);
      await first.until((server) => bytesOf(server.heard(1)).length >= CREDIT);
      for (const from of [0, 1000, CREDIT]) {
        const next = agent.connect();
        await next.greet();
        next.resume(1, from);
        await next.until((server) => bytesOf(server.heard(1)).length >= CREDIT);
        for (let id = 2; id < 5; id++) await next.run(id, 'true');
        expect(bytesOf(next.heard(1)).length).toBe(CREDIT);
      }
    }));

  test('[RS-06, RS-22] in the smallest pieces costs the agent little memory', () =>
    withLasting(async (agent, first) => {
      const resident = async (id: number): Promise<number> =>
        Number(/VmRSS:\s+(\d+)/.exec(await first.run(id, 'cat /proc/1/status'))?.[1] ?? NaN);
      const before = await resident(1);
      // Slow enough for the agent to see every piece by itself.
      const script =
        'for (1 .. 10_000) { syswrite $_, "x" and select undef, undef, undef, 0.0001 for *STDOUT, *STDERR }';
      first.start(2, ['perl', '-e', script]);
      const heard = await first.end(2);
      expect(heard.output.length).toBeGreaterThan(10_000);
      expect((await resident(3)) - before).toBeLessThan(2 * KiB);
      expect(agent.words).toBe('');
    }));

  test('[RS-22] of commands that ended is kept until somebody has noted their end', () =>
    withLasting(async (agent, first) => {
      agent.hangUp('discarding');
      const path = join(folder, 'ended');
      first.sh(1, `echo out; echo err >&2; exec 3>${path}; exit 3`);
      first.start(2, ['/nonexistent-program']);
      first.sh(3, 'true', { touch: '/nonexistent-folder/file' });
      await untilThere(path);
      for (let count = 0; count < 3; count++) {
        const next = agent.connect();
        expect(await next.greet()).toEqual([1, 2, 3]);
        for (const id of [1, 2, 3]) next.resume(id, 0);
        const ends = await Promise.all([next.end(1), next.end(2), next.end(3)]);
        expect(bytesOf(ends[0], 'O').toString() + bytesOf(ends[0], 'e').toString()).toBe('out\nerr\n');
        expect(ends.map(exitCodeOf)).toEqual([3, 127, undefined]);
        expect(ends[2].last.map(({ type }) => type)).toEqual(['F']);
      }
      const next = agent.connect();
      await next.greet();
      for (const id of [1, 3]) next.send('D', id);
      next.resume(1, 0);
      expect(await next.run(4, 'echo fine')).toBe('fine\n');
      const last = agent.connect();
      expect(await last.greet()).toEqual([2]);
      last.resume(1, 0);
      await last.run(5, 'true');
      expect(last.ids).toEqual([5]);
    }));

  test('[RS-22] larger than the credit of a command that ended while nobody was there comes whole', () =>
    withLasting(async (agent, first) => {
      const path = join(folder, 'over');
      const size = CREDIT + 60_000;
      first.sh(1, `head -c ${size} /dev/zero; echo >${path}; exit 5`);
      await untilThere(path);
      const next = agent.connect();
      await next.greet();
      next.resume(1, 100);
      await next.until((server) => bytesOf(server.heard(1)).length >= CREDIT);
      next.acknowledge(1, CREDIT);
      const heard = await next.end(1);
      expect([bytesOf(heard).length, exitCodeOf(heard)]).toEqual([size - 100, 5]);
    }));
});
