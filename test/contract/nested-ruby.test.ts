import { afterAll, describe, expect, test } from 'vitest';
import { makeMarker } from '../support/live-server.ts';
import { NestSite } from '../support/nest-site.ts';

const site = new NestSite();
afterAll(() => site[Symbol.asyncDispose]());

describe('[CX-12] copies of a ruby that has booted', () => {
  test('have random numbers of their own', async () => {
    const nest = await site.open('ruby', { slots: 2 });
    const code = 'require "securerandom"; puts rand, Random.new_seed, Random.bytes(8).dump, SecureRandom.hex';
    const seen: string[] = [];
    for (const slot of [0, 0, 1, 1]) {
      const { stdout, stderr, outcome } = await nest.run(code, slot);
      expect([stderr, outcome]).toMatchObject(['', { kind: 'exited', code: 0 }]);
      seen.push(...stdout.trimEnd().split('\n'));
    }
    expect(seen.length).toBe(16);
    expect(new Set(seen).size).toBe(16);
  });

  test('[SC-03] remember nothing of the runs before them', async () => {
    const nest = await site.open('ruby');
    const secret = makeMarker();
    const own = makeMarker();
    const halves = (marker: string): string => `"${marker.slice(0, 3)}" + "${marker.slice(3)}"`;
    const search = [
      'count = lambda do |words|',
      '  File.readlines("/proc/self/maps").reject { |line| line.include?("[v") }.sum do |line|',
      '    from, to = line.split.first.split("-").map { |place| place.to_i(16) }',
      '    File.binread("/proc/self/mem", to - from, from).to_s.scan(words).size rescue 0',
      '  end',
      'end',
      `kept = (${halves(own)}) * 100`,
      `p count.(${halves(secret)}), count.(${halves(own)})`,
    ].join('\n');
    for (let n = 0; n < 3; n++) await nest.run(`puts "${secret}"; $kept = "${secret}" * 100`);
    const [left, found] = (await nest.run(search)).stdout.split('\n').map(Number);
    expect(found).toBeGreaterThanOrEqual(100);
    // The words that it looks for, and what it has read of them.
    expect(left).toBeLessThan(50);
  });
});
