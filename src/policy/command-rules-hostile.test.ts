import { describe, expect, test } from 'vitest';
import { RULE_NAMES, refusedBy } from './command-rules.ts';

const KiB = 1024;

function ruleOf(command: string): string | undefined {
  return refusedBy(command, RULE_NAMES)?.rule;
}

describe('hostile text', () => {
  const LENGTH = 128 * KiB;
  const fill = (piece: string): string => piece.repeat(Math.ceil(LENGTH / piece.length)).slice(0, LENGTH);
  const PIECES = [
    "'",
    '"',
    '`',
    '\\',
    '\\`',
    '$(',
    '"$(',
    '`$(',
    '(',
    '((',
    '$((',
    '${',
    '"${',
    "${x:-'",
    '<(',
    'a<()',
    'a=(',
    'a=()',
    ')',
    '{ ',
    'if ',
    'in ',
    'case x in ',
    'case x in a) ',
    ';;',
    '[[ ',
    ';',
    'a;',
    '\n',
    '#',
    '#\n',
    '<<a\n',
    '<<a ',
    'env ',
    'env -S ',
    'env X=1 ',
    'find -exec ',
    'find a -exec b ";" ',
    "find -exec sh -c a ';' ",
    'xargs ',
    "bash -c '",
    'bash -c "',
    'bash -c a;',
    'eval ',
    'eval "eval ',
    'rm -rf ',
    'rm / ',
    '/../',
    '~',
    '~ ',
    '$HOME',
    '${HOME}',
    '$',
    '-',
    '=',
    '1>',
    '\ud800',
    '\0',
  ];

  /** CPU time of this thread in ms: what else the machine does is not counted. */
  function measure(text: string): number {
    const start = process.threadCpuUsage();
    refusedBy(text, RULE_NAMES);
    const { user, system } = process.threadCpuUsage(start);
    return (user + system) / 1000;
  }

  test.each(PIECES)('[RS-16] 128 KiB of %j take no more than bounded time', (piece) => {
    const whole = fill(piece);
    const half = whole.slice(0, LENGTH / 2);
    measure(half);
    const best = (text: string): number => Math.min(...[1, 2, 3].map(() => measure(text)));
    // Twice the text takes twice the time, or four times if it were quadratic; a few milliseconds are noise.
    expect(best(whole)).toBeLessThan(3.2 * best(half) + 40);
  });

  test('[RS-16] deep nesting is no way to break down, and not too deep nesting no way to hide', () => {
    expect(() => ruleOf(`${fill('$(')}curl`)).not.toThrow();
    expect(ruleOf(`${'$('.repeat(10_000)}curl x${')'.repeat(10_000)}`)).toBe('tool-curl');
    expect(ruleOf(`${'( '.repeat(10_000)}curl x`)).toBe('tool-curl');
  });

  test('[RS-16] no text makes it throw', () => {
    const random = randomNumbers(20_260_101);
    const parts = [
      ...PIECES,
      ')',
      '))',
      '}',
      ']]',
      'esac',
      'a',
      ' ',
      'curl',
      '&&',
      '|',
      '>',
      '\n',
      'fi',
      '😀',
    ];
    for (let round = 0; round < 20_000; round++) {
      const length = random() % 24;
      const text = Array.from({ length }, () => parts[random() % parts.length]).join('');
      const result = refusedBy(text, RULE_NAMES);
      expect([undefined, ...RULE_NAMES]).toContain(result?.rule);
    }
  });

  test('[RS-16] a command stays refused whatever complete command stands before it', () => {
    const random = randomNumbers(7);
    const words = [
      "'a b'",
      '"c $x"',
      '$(d "e")',
      '`f`',
      '"$(g)"',
      '${h:-"i"}',
      '\\;',
      '$((1<<2))',
      '>j',
      '~',
      'k',
    ];
    for (let round = 0; round < 5000; round++) {
      const count = 1 + (random() % 6);
      const before = Array.from({ length: count }, () => words[random() % words.length]).join(' ');
      expect([before, ruleOf(`echo ${before}; curl x`)]).toEqual([before, 'tool-curl']);
      expect([before, ruleOf(`echo ${before} curl x`)]).toEqual([before, undefined]);
    }
  });
});

/** Numbers that are the same at every run. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
}
