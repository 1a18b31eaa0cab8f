import { describe, expect, test } from 'vitest';
import { readDenials } from './denials.ts';

const FILE = { type: 'file', path: '/a', operations: ['read'] } as const;
const line = (denial: unknown): string => `hotcell-denied: ${JSON.stringify(denial)}`;

describe('denials in stderr', () => {
  test('[MC-02] are taken out, each once', () => {
    const denial = { action: 'read /a', permission: FILE };
    const text = ['before', line(denial), 'between', line(denial), 'after', ''].join('\n');
    expect(readDenials(text)).toEqual({ denials: [denial], stderr: 'before\nbetween\nafter\n' });
  });

  test.each([
    ['no JSON', 'hotcell-denied: {'],
    ['an unknown kind', line({ action: 'x', permission: { type: 'root' } })],
    ['more fields than there are', line({ action: 'x', permission: FILE, grant: true })],
    ['a permission with more fields', line({ action: 'x', permission: { ...FILE, host: 'a' } })],
    ['an empty path', line({ action: 'x', permission: { ...FILE, path: '' } })],
    ['a line that is too long', line({ action: 'x'.repeat(9000), permission: FILE })],
    ['words before it', ` ${line({ action: 'x', permission: FILE })}`],
    ['null', 'hotcell-denied: null'],
  ])('[MC-02] with %s stay text', (_what, text) => {
    expect(readDenials(text)).toEqual({ denials: [], stderr: text });
  });

  test('[MC-02] are bounded in number', () => {
    const lines = Array.from({ length: 1000 }, (_, index) =>
      line({ action: 'x', permission: { ...FILE, path: `/${index}` } }),
    );
    const { denials, stderr } = readDenials(lines.join('\n'));
    expect(denials).toHaveLength(20);
    expect(stderr.split('\n')).toHaveLength(980);
  });

  test('[MC-02] no prototype is changed by what they say', () => {
    const text =
      'hotcell-denied: {"__proto__":{"x":1},"action":"a","permission":{"type":"env","variables":["A"]}}';
    readDenials(text);
    expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
  });
});
