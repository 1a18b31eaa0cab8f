import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  countMarked,
  expectServes,
  makeMarker,
  runCode,
  startServer,
  stopClean,
  waitUntilGone,
} from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { PROGRAMS } from '../support/programs.ts';
import { USUAL_WAYS, OCI_FRESH, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

const TIMEOUT_MS = 1500;
const KEPT = 10 * 1024;
const CUT = '[Output truncated at 10KB limit]';

/** Programs that start `sleep <marker>` in ways that have fooled process killers, and then stay. */
const TREES: Record<string, (marker: string) => string> = {
  'a child': (marker) => `sleep ${marker} & echo started; wait`,
  'a grandchild': (marker) => `bash -c 'bash -c "sleep ${marker} & wait" & wait' & echo started; wait`,
  'a double fork in a session of its own': (marker) =>
    `(setsid bash -c 'sleep ${marker} & disown' &) ; echo started; while :; do sleep 1; done`,
  'children that ignore every signal they can': (marker) =>
    `trap '' TERM HUP INT QUIT; bash -c 'trap "" TERM HUP INT; sleep ${marker}; :' & echo started; wait`,
  'a stopped child': (marker) =>
    `sleep ${marker} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; echo started; wait`,
};

describeEach(USUAL_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way });
  });
  afterAll(() => stopClean(server));

  describe('timeout', () => {
    test.each(PROGRAMS)(
      '[CX-05, CX-04] $language: partial output, message, 124',
      async ({ language, loops }) => {
        const reply = await runCode(server, language, { code: loops, timeout_ms: TIMEOUT_MS });
        expect(reply).toMatchObject({
          stdout: 'started\n',
          exit_code: 124,
          receipt: { outcome: 'limit', limit_hit: 'wall_time' },
        });
        expect(reply.stderr).toBe('[Execution timed out after 1.5 seconds]');
        expect(reply.receipt.wall_time_ms).toBeGreaterThanOrEqual(TIMEOUT_MS - 1);
      },
    );

    // At once: each takes its three seconds anyway.
    test.concurrent.each(Object.keys(TREES))('[CX-05] %s dies with the program', async (kind) => {
      const marker = makeMarker();
      const code = TREES[kind]?.(marker) ?? '';
      const pending = runCode(server, 'bash', { code, timeout_ms: 3000 });
      // Seen on the host first: otherwise its absence afterwards would prove nothing.
      await waitFor('the tree runs', () => countMarked(marker) > 0);
      const reply = await pending;
      expect(reply).toMatchObject({ stdout: 'started\n', exit_code: 124 });
      await waitUntilGone(marker);
    });

    test.each(['python', 'bash'])(
      '[CX-05] what a finished program left running does not hold the answer: %s',
      async (language) => {
        const marker = makeMarker();
        const shell = `setsid sleep ${marker} & sleep ${marker} & echo started`;
        const code = language === 'bash' ? shell : `import os\nos.system(${JSON.stringify(shell)})`;
        const reply = await runCode(server, language, { code, timeout_ms: 30_000 });
        expect(reply).toMatchObject({ stdout: 'started\n', exit_code: 0, receipt: { outcome: 'exited' } });
        await waitUntilGone(marker);
      },
    );

    test('[CX-05] a program that closes its streams is killed in time too', async () => {
      const reply = await runCode(server, 'bash', {
        code: 'exec >&- 2>&- <&-; while :; do :; done',
        timeout_ms: 500,
      });
      expect(reply).toMatchObject({ exit_code: 124, receipt: { limit_hit: 'wall_time' } });
    });

    // Ten seconds, and no driver has to do with it.
    if (way === OCI_FRESH)
      test('[CX-05] the default applies when the request says nothing', async () => {
        const reply = await runCode(server, 'bash', 'echo started; sleep 1000');
        expect(reply).toMatchObject({ stdout: 'started\n', exit_code: 124 });
        expect(reply.stderr).toBe('[Execution timed out after 10 seconds]');
      });
  });

  describe('output', () => {
    const print = (stream: string, expression: string): string =>
      `import sys\nsys.${stream}.buffer.write(${expression})`;

    describe.each(['stdout', 'stderr'] as const)('%s', (stream) => {
      test('[CX-06] 10 KB come back whole, one byte more is cut', async () => {
        const whole = await runCode(server, 'python', print(stream, `b'a' * ${KEPT}`));
        expect(whole[stream]).toBe('a'.repeat(KEPT));
        const cut = await runCode(server, 'python', print(stream, `b'a' * ${KEPT} + b'b'`));
        expect(cut[stream]).toBe(`${'a'.repeat(KEPT)}\n${CUT}`);
        expect(cut.receipt[`${stream}_bytes`]).toBe(KEPT + 1);
      });

      test.each([
        ['é', 1],
        ['€', 1],
        ['€', 2],
        ['😀', 1],
        ['😀', 2],
        ['😀', 3],
      ])('[CX-06] %s with %i bytes before the border is left out whole', async (character, before) => {
        const code = print(stream, `b'a' * ${KEPT - before} + ${JSON.stringify(character)}.encode() * 3000`);
        const reply = await runCode(server, 'python', code);
        expect(reply[stream]).toBe(`${'a'.repeat(KEPT - before)}\n${CUT}`);
      });

      test('[CX-06] a character that ends at the border stays', async () => {
        const reply = await runCode(server, 'python', print(stream, `b'a' * ${KEPT - 3} + '€uro'.encode()`));
        expect(reply[stream]).toBe(`${'a'.repeat(KEPT - 3)}€\n${CUT}`);
      });
    });

    test('[CX-06] both streams are cut each for itself', async () => {
      const reply = await runCode(server, 'bash', 'yes o | head -c 20000; yes e | head -c 30000 >&2');
      expect([reply.stdout, reply.stderr].map((text) => text.endsWith(`\n${CUT}`))).toEqual([true, true]);
      expect(reply.receipt).toMatchObject({ stdout_bytes: 20_000, stderr_bytes: 30_000, limit_hit: null });
      expect(reply.exit_code).toBe(0);
    });

    test('[CX-06, CX-05] after a timeout both messages are there, the cut last', async () => {
      const code = 'yes e | head -c 30000 >&2; sleep 1000';
      const reply = await runCode(server, 'bash', { code, timeout_ms: TIMEOUT_MS });
      expect(reply.stderr.split('\n').slice(-2)).toEqual(['[Execution timed out after 1.5 seconds]', CUT]);
    });

    test.each([
      ['a lone continuation byte', String.raw`b'a\x80b'`, 'a\uFFFDb'],
      ['an overlong slash', String.raw`b'a\xc0\xafb'`, 'a\uFFFD\uFFFDb'],
      ['a surrogate', String.raw`b'a\xed\xa0\x80b'`, 'a\uFFFD\uFFFD\uFFFDb'],
      ['a cut character at the end', String.raw`b'a\xe2\x82'`, 'a\uFFFD'],
      ['NUL and control characters', String.raw`b'a\x00\x01\x1b[31m\x06b'`, 'a\u0000\u0001\u001B[31m\u0006b'],
      ['the ready byte alone', String.raw`b'\x06'`, '\u0006'],
    ])('[CX-06] %s does not break the answer', async (_what, bytes, text) => {
      const reply = await runCode(server, 'python', print('stdout', bytes));
      expect(reply).toMatchObject({ stdout: text, exit_code: 0 });
    });

    test('[CX-06] invalid bytes all over the border do not break the answer', async () => {
      const reply = await runCode(server, 'python', print('stdout', String.raw`b'\xff' * 20000`));
      expect(reply.stdout.replaceAll('\uFFFD', '')).toBe(`\n${CUT}`);
      expect(reply.receipt.stdout_bytes).toBe(20_000);
      await expectServes(server);
    });
  });
});
