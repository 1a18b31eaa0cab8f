import { expect, test } from 'vitest';
import { requireFreezer, requireLasting, requireLastingCell, requireLastingExec } from './capabilities.ts';
import type { Cell } from './cell.ts';
import type { Driver } from './driver.ts';
import type { Exec } from './exec.ts';

const cell = { name: 'x', isolation: { driver: 'plain' } } as Cell;

test.each<[string, () => unknown, object]>([
  [
    'cells that last',
    () => requireLasting({ name: 'plain' } as Driver),
    { code: 'SESSIONS_UNAVAILABLE', message: expect.stringContaining('plain') },
  ],
  [
    'a freezer',
    () => requireFreezer(cell),
    { code: 'POLICY_UNENFORCEABLE', message: expect.stringContaining('plain') },
  ],
  ['a cell that lasts', () => requireLastingCell(cell), { code: 'INTERNAL' }],
  ['a command that lasts', () => requireLastingExec({} as Exec), { code: 'INTERNAL' }],
])('[SC-04] without %s whoever needs it is told', (_what, ask, error) => {
  expect(ask).toThrow(expect.objectContaining(error));
});

test('[SC-04] what is there is handed out', () => {
  const freezer = { freeze: () => Promise.resolve(), thaw: () => Promise.resolve() };
  expect(requireFreezer({ ...cell, freezer })).toBe(freezer);
});
