import { expect, test } from 'vitest';
import type { CellSpec } from '../../core/cell.ts';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { requireOwner } from './cell-owner.ts';

const SPEC: CellSpec = { name: 'x', kind: 'run', limits: DEFAULT_LIMITS };

test('[FL-09] an owner is taken as given', () => {
  expect(requireOwner({ ...SPEC, owner: { uid: 1000, gid: 50 } })).toEqual({ uid: 1000, gid: 50 });
  expect(requireOwner(SPEC)).toBeUndefined();
});

test.each([
  [{ uid: 0, gid: 1000 }, 'POLICY_UNENFORCEABLE'],
  [{ uid: 1000, gid: 0 }, 'POLICY_UNENFORCEABLE'],
  [{ uid: -1, gid: 1000 }, 'INTERNAL'],
  [{ uid: 1000, gid: 2 ** 32 - 1 }, 'INTERNAL'],
  [{ uid: 1.5, gid: 1000 }, 'INTERNAL'],
])('[FL-09, SC-03] %j is nobody that a cell may be', (owner, code) => {
  expect(() => requireOwner({ ...SPEC, owner })).toThrow(expect.objectContaining({ code }));
});
