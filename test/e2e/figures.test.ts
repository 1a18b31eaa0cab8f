import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectServes, runCode, settle, startServer, stopClean } from '../support/live-server.ts';
import { PROGRAMS } from '../support/programs.ts';
import { USUAL_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

const ALLOCATE = (megabytes: number): string =>
  `import time\nx = bytearray(${megabytes} << 20)\nprint(len(x) >> 20)\ntime.sleep(1)`;

describeEach(USUAL_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way });
  });
  afterAll(() => stopClean(server));

  describe('figures of overlapping runs', () => {
    test('[CX-10] each reports the peak of its own memory', async () => {
      const [big, tiny, middle] = await Promise.all([
        runCode(server, 'python', ALLOCATE(100)),
        runCode(server, 'python', ALLOCATE(1)),
        runCode(server, 'python', ALLOCATE(40)),
      ]);
      expect(big.memory_used_mb).toBeGreaterThan(100);
      expect(big.memory_used_mb).toBeLessThan(130);
      expect(middle.memory_used_mb).toBeGreaterThan(40);
      expect(middle.memory_used_mb).toBeLessThan(70);
      expect(tiny.memory_used_mb).toBeLessThan(30);
      expect(big.receipt.peak_memory_bytes).toBeGreaterThan(100 << 20);
    });

    test('[CX-10] memory that was given back still counts as peak', async () => {
      const reply = await runCode(
        server,
        'python',
        'x = bytearray(100 << 20)\ndel x\nimport time; time.sleep(0.2)',
      );
      expect(reply.memory_used_mb).toBeGreaterThan(100);
    });

    test('[CX-10] each reports its own CPU time', async () => {
      const busy = 'import time\nend = time.time() + 2\nwhile time.time() < end: pass';
      const [hot, cold] = await Promise.all([
        runCode(server, 'python', busy),
        runCode(server, 'python', 'import time\ntime.sleep(2)'),
      ]);
      expect(hot.receipt.cpu_time_ms).toBeGreaterThan(cold.receipt.cpu_time_ms * 4);
      expect(hot.cpu_percent).toBeGreaterThan(cold.cpu_percent * 4);
      expect(hot.cpu_percent).toBeLessThan(60);
      expect(hot.cpu_percent).toBeCloseTo((hot.receipt.cpu_time_ms / hot.receipt.wall_time_ms) * 100, 0);
    });

    test('[CX-10] the time spent booting is not on the bill', async () => {
      await settle(server);
      const { receipt } = await runCode(server, 'javascript', '0');
      expect(receipt.warm).toBe(true);
      const cold = await runCode(server, 'bash', 'node -e 0');
      expect(receipt.cpu_time_ms).toBeLessThan(cold.receipt.cpu_time_ms);
    });
  });

  describe('limits of a request', () => {
    test('[CX-09, CX-10] memory_mb raises the limit for this run alone', async () => {
      const [raised, plain] = await Promise.all([
        runCode(server, 'python', { code: ALLOCATE(400), memory_mb: 512 }),
        runCode(server, 'python', ALLOCATE(400)),
      ]);
      expect(raised).toMatchObject({ stdout: '400\n', exit_code: 0, receipt: { limit_hit: null } });
      expect(raised.memory_used_mb).toBeGreaterThan(400);
      expect(plain).toMatchObject({ exit_code: 137, receipt: { limit_hit: 'memory' } });
    });

    test('[CX-09, CX-10] memory_mb lowers the limit for this run alone', async () => {
      const [lowered, plain] = await Promise.all([
        runCode(server, 'python', { code: ALLOCATE(100), memory_mb: 64 }),
        runCode(server, 'python', ALLOCATE(100)),
      ]);
      expect(lowered).toMatchObject({ exit_code: 137, receipt: { limit_hit: 'memory' } });
      expect(lowered.stderr).toContain('limit 64 MB');
      expect(plain).toMatchObject({ stdout: '100\n', exit_code: 0 });
    });

    test('[CX-07, CX-10] the least memory_mb is a limit and no failure of ours', async () => {
      const answers = await Promise.all(
        PROGRAMS.map(({ language, bothStreams }) =>
          server.execute(language, { code: bothStreams, memory_mb: 8 }),
        ),
      );
      // Either it fits, or it is told what it lacked: as a result, or before it ran.
      const told = answers.map(({ status, body }) =>
        status === 200 ? body.exit_code === 0 || body.receipt.limit_hit === 'memory' : body.code,
      );
      expect(told.filter((word) => word !== true && word !== 'LIMIT_TOO_LOW')).toEqual([]);
      const refused = answers.filter(({ status }) => status !== 200);
      expect(refused.map(({ status, body }) => [status, body.field])).toEqual(
        refused.map(() => [422, 'memory_mb']),
      );
    });

    test('[CX-08] after a limit that was too low the next request is served', () => expectServes(server));

    test.each([
      [{ memory_mb: 1025 }, 'memory_mb', 'LIMIT_TOO_HIGH'],
      [{ timeout_ms: 60_001 }, 'timeout_ms', 'LIMIT_TOO_HIGH'],
      [{ memory_mb: 7 }, 'memory_mb', 'INVALID_REQUEST'],
      [{ timeout_ms: 9 }, 'timeout_ms', 'INVALID_REQUEST'],
      [{ memory_mb: 1e300 }, 'memory_mb', 'INVALID_REQUEST'],
      [{ timeout_ms: -1 }, 'timeout_ms', 'INVALID_REQUEST'],
    ])('[CX-07, CX-10] %j is refused by the name of the field', async (limits, field, code) => {
      const { status, body } = await server.execute('python', { code: 'print(1)', ...limits });
      expect({ status, code: body.code, field: body.field }).toEqual({ status: 422, code, field });
      expect(body.detail).toContain(field);
    });

    test('[CX-07] the ceilings themselves may be asked for', async () => {
      const reply = await runCode(server, 'python', {
        code: 'print(1)',
        memory_mb: 1024,
        timeout_ms: 60_000,
      });
      expect(reply.stdout).toBe('1\n');
    });
  });
});
