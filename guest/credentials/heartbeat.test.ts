import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { LOUD_PERL } from '../../test/support/loud-perl.ts';
import { waitFor } from '../../test/support/leftovers.ts';
import { toHeartbeatRequest } from '../../src/fleet/environment/heartbeat.ts';

const children: ChildProcessWithoutNullStreams[] = [];
let words = '';
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  expect(words).not.toContain('warning');
  words = '';
});

function start(interval: number | string): { child: ChildProcessWithoutNullStreams; said: () => string } {
  const { argv } = toHeartbeatRequest(Number(interval));
  const script = argv[1]?.replace('{guest}', dirname(import.meta.dirname)) ?? '';
  const child = spawn(argv[0], [...LOUD_PERL, script, String(interval)], { stdio: ['pipe', 'pipe', 'pipe'] });
  children.push(child);
  child.stderr.on('data', (bytes: Buffer) => (words += bytes.toString()));
  let text = '';
  child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString()));
  return { child, said: () => text };
}

describe('a sign of life', () => {
  test('[FL-12] comes at once and again and again, whatever is said to it, and ends with its stdin', async () => {
    const { child, said } = start(0.05);
    child.stdin.write('x'.repeat(10_000));
    await waitFor('five beats', () => said().length >= 25);
    expect(said()).toMatch(/^(?:beat\n)+$/);
    const closed = once(child, 'close');
    child.stdin.end();
    expect(await closed).toEqual([0, null]);
  });

  test('[FL-12] is not more frequent than was asked for', async () => {
    const { child, said } = start(1000);
    await waitFor('a beat', () => said() === 'beat\n');
    for (let count = 0; count < 20; count++) {
      child.stdin.write('x');
      await new Promise(setImmediate);
    }
    const closed = once(child, 'close');
    child.stdin.end();
    await closed;
    expect(said()).toBe('beat\n');
  });

  test('[FL-12] ends when nobody reads it', async () => {
    const { child, said } = start(0.05);
    await waitFor('a beat', () => said() !== '');
    const closed = once(child, 'close');
    child.stdout.destroy();
    expect(await closed).toEqual([0, null]);
  });

  test('[FL-12] costs little memory', async () => {
    const { child, said } = start(1000);
    await waitFor('a beat', () => said() !== '');
    const [, kilobytes] =
      /VmRSS:\s+(\d+) kB/.exec(readFileSync(join('/proc', String(child.pid), 'status'), 'utf8')) ?? [];
    expect(Number(kilobytes)).toBeLessThan(10_000);
  });

  test.each(['', '0', '-1', 'x', '1e9', '10000000'])('[FL-12] %j seconds are none', async (interval) => {
    const { child, said } = start(interval);
    const [code] = (await once(child, 'close')) as [number];
    expect([code, said()]).toEqual([64, '']);
  });
});
