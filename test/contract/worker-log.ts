import { expect } from 'vitest';
import type { Driver } from '../../src/core/driver.ts';
import type { EngineApi } from '../support/engine-api.ts';
import { waitFor } from '../support/leftovers.ts';
import { bash, finish, specOf } from './cells.ts';
import { WORKER_OWNER } from './workers.ts';

const MiB = 1024 ** 2;
const SPEC = { ...specOf(undefined), kind: 'worker', owner: WORKER_OWNER } as const;

interface Inspected {
  readonly HostConfig: { readonly LogConfig: { readonly Type: string } };
}

/** An engine keeps lines for people, a bounded number, and nothing of what programs say or forge. */
export async function checkWorkerLog(driver: Driver, engine: EngineApi): Promise<void> {
  const cell = await driver.create(SPEC);
  try {
    const log = async (): Promise<string[]> => {
      const { stdout, stderr } = await engine.logs(cell.id);
      expect(stderr).toBe('');
      return stdout.split('\n').filter((line) => line !== '');
    };
    const untilLast = (last: string) => async (): Promise<boolean> => {
      // The agent does not wait for an engine that is slow, so this one may get lost, too.
      cell.writeLog?.(last);
      return (await log()).at(-1) === last;
    };
    cell.writeLog?.('first');
    await waitFor('a line is kept', async () => (await log()).join() === 'first');

    const attempts = [
      'echo forged; echo forged >&2',
      'for way in /proc/[0-9]*/fd/* /dev/console /dev/stdout /opt/hotcell/wire/out; do echo forged >>$way; done',
      'ls -A /opt/hotcell/wire >/tmp/seen; echo forged >/opt/hotcell/wire/out',
      'mkfifo /opt/hotcell/wire/out; mount -o remount,rw /opt/hotcell/wire; true',
    ];
    for (const attempt of attempts) {
      const exec = await cell.exec(bash(`(${attempt}) 2>/dev/null`));
      exec.closeStdin();
      await finish(exec);
    }
    const seen = await cell.exec(bash('cat /tmp/seen; echo works'));
    seen.closeStdin();
    expect(await finish(seen)).toMatchObject({ stdout: 'works\n', stderr: '' });
    await waitFor('the next line is kept', untilLast('second'));
    expect(new Set(await log())).toEqual(new Set(['first', 'second']));

    for (let turn = 0; turn < 20_000; turn++) cell.writeLog?.(`turn ${turn} ${'x'.repeat(1000)}`);
    await waitFor('the last line is kept', untilLast('last'));
    const kept = await log();
    expect(kept.filter((line) => !/^(first|second|turn \d+ x{1000}|last)$/.test(line))).toEqual([]);
    expect(kept.length).toBeGreaterThan(10);
    expect(kept.join('\n').length).toBeLessThan(4 * MiB);
  } finally {
    await cell.dispose();
  }
}

/** Where a FIFO of the host does not lead into cells nothing is kept, and workers work all the same. */
export async function checkNoWorkerLog(driver: Driver, engine: EngineApi): Promise<void> {
  const cell = await driver.create(SPEC);
  try {
    expect(cell.writeLog === undefined).toBe(true);
    const { HostConfig } = await engine.call<Inspected>('GET', `/containers/${cell.id}/json`);
    expect(HostConfig.LogConfig.Type).toBe('none');
  } finally {
    await cell.dispose();
  }
}
