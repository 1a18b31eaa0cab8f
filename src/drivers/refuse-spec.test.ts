import { expect, test } from 'vitest';
import type { CellSpec } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { APPLE as APPLE_KIND } from './apple/kind.ts';
import { OCI as OCI_KIND } from './oci/kind.ts';
import { PRELOAD as PRELOAD_KIND } from './preload/kind.ts';
import { refuseSpec, refuseTerminal } from './refuse-spec.ts';

const SPEC: CellSpec = { name: 'x', kind: 'run', limits: DEFAULT_LIMITS };
const APPLE = { name: 'apple', traits: APPLE_KIND.traits } as Driver;
const ABLE = { name: 'oci', traits: OCI_KIND.traits, lasting: {} } as Driver;
const REQUEST = { argv: ['bash'], env: {}, terminal: { rows: 1, columns: 1 } } as const;

test.each<[string, Partial<CellSpec>]>([
  ['a worker', { kind: 'worker' }],
  ['an owner', { owner: { uid: 1000, gid: 1000 } }],
  ['a folder to write to', { folders: [{ name: 'x', folder: '/x', at: '/x', writable: true }] }],
])('[FL-09, SC-04] who cannot keep workers refuses %s', (_what, worker) => {
  expect(() => refuseSpec({ ...SPEC, ...worker }, APPLE)).toThrow(
    expect.objectContaining({ code: 'POLICY_UNENFORCEABLE' }),
  );
  expect(() => refuseSpec({ ...SPEC, ...worker }, ABLE)).not.toThrow();
});

test('[SC-04] a folder to read is no reason to refuse', () => {
  const folders = [{ name: 'x', folder: '/x', at: '/x' }];
  expect(() => refuseSpec({ ...SPEC, folders }, APPLE)).not.toThrow();
});

test.each<[string, Partial<CellSpec>]>([
  ['a cell that lasts', { lasting: { store: 'abcdefabcdef' } }],
  ['a workspace', { workspace: { folder: undefined, owner: 1000 } }],
])('[SC-04] whose cells end with the server refuses %s', (_what, session) => {
  expect(() => refuseSpec({ ...SPEC, ...session }, APPLE)).toThrow(
    expect.objectContaining({ code: 'SESSIONS_UNAVAILABLE' }),
  );
  expect(() => refuseSpec({ ...SPEC, ...session }, ABLE)).not.toThrow();
});

test('[SC-04] who has no terminals gives none', () => {
  const preload = { name: 'preload', traits: PRELOAD_KIND.traits } as Driver;
  expect(() => refuseTerminal(REQUEST, preload)).toThrow(
    expect.objectContaining({ code: 'POLICY_UNENFORCEABLE' }),
  );
  expect(() => refuseTerminal(REQUEST, ABLE)).not.toThrow();
});
