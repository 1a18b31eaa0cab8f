import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectServes, readMetrics, settle, startServer, stopClean } from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { USUAL_WAYS, describeEach } from '../support/served-by.ts';
import type { ExecuteAnswer, TestServer } from '../support/server.ts';

const RUNNING = 3;
const QUEUE = 5;

describeEach(USUAL_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({
      way,
      languages: ['bash', 'python'],
      args: ['--set', `pool.running=${RUNNING}`, '--set', `pool.queue=${QUEUE}`],
    });
  });
  afterAll(() => stopClean(server));

  function burst(count: number, body: (index: number) => object): Promise<ExecuteAnswer[]> {
    return Promise.all(Array.from({ length: count }, (_, index) => server.execute('bash', body(index))));
  }

  async function countRuns(where: 'running' | 'waiting'): Promise<number | undefined> {
    return (await readMetrics(server, `hotcell_runs_${where}`)).get('');
  }

  describe('more requests than there is room for', () => {
    test('[CX-08, CX-01] each is answered, by its own result or by 429', async () => {
      await settle(server);
      const answers = await burst(40, (index) => ({ code: `sleep 0.2; echo ${index}` }));
      const served = answers
        .map(({ status }, index) => ({ status, index }))
        .filter(({ status }) => status === 200);
      const refused = answers.filter(({ status }) => status === 429);
      expect(served.length + refused.length).toBe(answers.length);
      for (const { index } of served) expect(answers[index]?.body.stdout).toBe(`${index}\n`);
      // Those inside and those in the queue, at the least; more if some ended while others came.
      expect(served.length).toBeGreaterThanOrEqual(RUNNING + QUEUE);
      expect(refused.length).toBeGreaterThan(0);
      for (const { headers, body } of refused) {
        expect(body.code).toBe('TOO_BUSY');
        expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      }
      await expectServes(server);
    });

    test('[CX-08] a full house of programs that never end is empty again after their time', async () => {
      const answers = await burst(20, () => ({ code: 'while :; do :; done', timeout_ms: 700 }));
      for (const { status, body } of answers)
        expect([200, 429]).toContain(status === 200 ? (body.exit_code === 124 ? 200 : 0) : status);
      await expectServes(server);
    });

    test('[CX-08] those who leave the queue make room', async () => {
      const controller = new AbortController();
      const post = (code: string, signal?: AbortSignal): Promise<Response> =>
        fetch(`${server.url}/execute/bash`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ code, timeout_ms: 20_000 }),
          ...(signal === undefined ? {} : { signal }),
        });
      const leaving = Array.from({ length: RUNNING + QUEUE }, () => post('sleep 15', controller.signal));
      const gone = Promise.allSettled(leaving);
      await waitFor('the queue is full', async () => {
        return (await countRuns('waiting')) === QUEUE;
      });
      expect((await post('echo no')).status).toBe(429);
      controller.abort();
      expect((await gone).map(({ status }) => status)).toEqual(Array(RUNNING + QUEUE).fill('rejected'));
      // The server hears of it a moment later, and long before the programs would have ended.
      const isEmpty = async (): Promise<boolean> =>
        (await countRuns('waiting')) === 0 && (await countRuns('running')) === 0;
      await waitFor('all of them have left', isEmpty);
      await expectServes(server);
    });
  });
});
