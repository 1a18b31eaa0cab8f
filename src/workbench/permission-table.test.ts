import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Permission } from '../wire/permissions.ts';
import { coversHost, coversPath, coversVariable } from './grantable.ts';
import { PermissionTable, type PermissionParts } from './permission-table.ts';
import { toPermissionText } from './permission-text.ts';
import { WorkbenchSettings } from './settings.ts';

function makeTable(settings: unknown = {}, more: Partial<PermissionParts> = {}): PermissionTable {
  return new PermissionTable({
    settings: WorkbenchSettings.parse(settings),
    mode: 'preload',
    values: { TOKEN: 'secret', TOKENS: 'more', PATH: '/bin' },
    onHttpChange: () => {},
    ...more,
  });
}

const http = (host: string, more: object = {}): Permission => ({ type: 'http', host, ...more });
const file = (path: string, ...operations: ('read' | 'write')[]): Permission => ({
  type: 'file',
  path,
  operations,
});
const env = (...variables: string[]): Permission => ({ type: 'env', variables });
const refusal = expect.objectContaining({ code: 'PERMISSION_REFUSED' });

let folder: string;
beforeEach(() => (folder = realpathSync(mkdtempSync(join(tmpdir(), 'hotcell-permissions-')))));
afterEach(() => rmSync(folder, { recursive: true }));

describe('[MC-04] granting', () => {
  test('twice is once, and revoking takes the same words in any order', () => {
    const table = makeTable();
    table.grant(http('example.org', { methods: ['GET', 'POST'], description: 'why' }));
    table.grant(http('EXAMPLE.org', { methods: ['POST', 'GET', 'GET'] }));
    expect(table.list()).toHaveLength(1);
    expect(table.revoke(http('example.org'))).toBe(false);
    expect(table.revoke(http('example.org', { methods: ['POST', 'GET'] }))).toBe(true);
    expect(table.revoke(http('example.org', { methods: ['POST', 'GET'] }))).toBe(false);
    expect(table.list()).toEqual([]);
  });

  test('only what the operator lets be granted: nothing of this machine unless he says so', () => {
    const table = makeTable();
    table.grant(http('example.org'));
    expect(() => table.grant(http('no host'))).toThrow(refusal);
    expect(() => table.grant(file(folder, 'read'))).toThrow(refusal);
    expect(() => table.grant(env('TOKEN'))).toThrow(refusal);
    const strict = makeTable({ grantable: { http: ['*.example.org'], env: ['TOKEN'] } });
    strict.grant(http('a.example.org'));
    expect(() => strict.grant(http('example.net'))).toThrow(refusal);
    expect(() => strict.grant(http('*.org'))).toThrow(refusal);
    expect(() => strict.grant(env('TOKEN', 'PATH'))).toThrow(refusal);
    expect(() => strict.grant(env('TOKEN*'))).toThrow(refusal);
    expect(() => strict.grant(env('*'))).toThrow(refusal);
  });

  test('no more than the bound', () => {
    const table = makeTable({ permissions: 2 });
    table.grant(http('a.org'));
    table.grant(http('b.org'));
    table.grant(http('a.org', { description: 'again' }));
    expect(() => table.grant(http('c.org'))).toThrow(refusal);
  });

  test('files of this machine are not for containers', () => {
    const table = makeTable({ grantable: { file: [folder] } }, { mode: 'container' });
    expect(() => table.grant(file(folder, 'read'))).toThrow(
      expect.objectContaining({ code: 'PERMISSION_REFUSED', hint: expect.stringContaining('read_file') }),
    );
  });

  test('links do not lead out of the folder, at the grant or later', () => {
    mkdirSync(join(folder, 'open/data'), { recursive: true });
    mkdirSync(join(folder, 'closed'));
    writeFileSync(join(folder, 'closed/secret'), '');
    symlinkSync('../closed', join(folder, 'open/link'));
    symlinkSync('open', join(folder, 'alias'));
    const table = makeTable({ grantable: { file: [join(folder, 'alias')] } });
    for (const path of [
      'open/link',
      'open/link/secret',
      'open/../closed',
      'closed',
      'opened',
      'open/link/new',
    ])
      expect(() => table.grant(file(join(folder, path), 'read'))).toThrow(refusal);
    expect(() => table.grant(file('open/data', 'read'))).toThrow(refusal);
    expect(() => table.grant(file(join(folder, 'open/none/none'), 'read'))).toThrow(refusal);
    table.grant(file(join(folder, 'open/new.txt'), 'write'));
    table.grant(file(join(folder, 'alias/data'), 'read'));
    expect(table.list()[1]).toMatchObject({ path: join(folder, 'open/data') });
    expect(table.current()).toEqual({ permissions: table.list(), warnings: [] });

    renameSync(join(folder, 'open/data'), join(folder, 'open/old'));
    symlinkSync('../closed', join(folder, 'open/data'));
    const { permissions, warnings } = table.current();
    expect(permissions).toEqual([file(join(folder, 'open/new.txt'), 'write')]);
    expect(warnings).toEqual([expect.stringContaining('open/data does not hold')]);
    expect(table.revoke(file(join(folder, 'open/data'), 'read'))).toBe(true);
  });

  test('a path is revoked by either of its names', () => {
    mkdirSync(join(folder, 'open'));
    symlinkSync('open', join(folder, 'alias'));
    const table = makeTable({ grantable: { file: [folder] } });
    table.grant(file(join(folder, 'alias'), 'read', 'write'));
    expect(table.revoke(file(join(folder, 'alias'), 'write', 'read'))).toBe(true);
  });

  test('variables are those that were granted and are there', () => {
    const table = makeTable({ grantable: { env: ['TOKEN*'] } });
    expect(table.values()).toEqual({});
    expect(table.grantableValues()).toEqual({ TOKEN: 'secret', TOKENS: 'more' });
    table.grant(env('TOKEN'));
    expect(table.values()).toEqual({ TOKEN: 'secret' });
    table.grant(env('TOKEN*'));
    expect(table.values()).toEqual({ TOKEN: 'secret', TOKENS: 'more' });
  });

  test('the gate is told of every change for it, and of no other', () => {
    let changes = 0;
    const table = makeTable({ grantable: { env: ['*'] } }, { onHttpChange: () => changes++ });
    table.grant(env('TOKEN'));
    expect(changes).toBe(0);
    table.grant(http('a.org', { pathPattern: '/x/*' }));
    expect(table.httpRules()).toEqual([{ host: 'a.org', pathPattern: '/x/*' }]);
    table.revoke(http('b.org'));
    expect(changes).toBe(1);
    table.revoke(http('a.org', { pathPattern: '/x/*' }));
    expect([changes, table.httpRules()]).toEqual([2, []]);
  });
});

test.each([
  ['*', 'example.org', true],
  ['example.org', 'Example.ORG', true],
  ['example.org', 'a.example.org', false],
  ['*.example.org', 'a.b.example.org', true],
  ['*.example.org', '*.b.example.org', true],
  ['*.example.org', '*.example.org', true],
  ['*.example.org', 'example.org', false],
  ['*.example.org', 'badexample.org', false],
  ['*.example.org', '*.org', false],
  ['*.example.org', 'a.example.org:8443', false],
  ['*.example.org:8443', 'a.example.org:8443', true],
])('[MC-04] the operator’s %s has %s: %s', (pattern, host, covered) => {
  expect(coversHost([pattern], host)).toBe(covered);
});

test.each([
  ['A*', 'AB', true],
  ['*', '', true],
  ['A', 'A*', false],
  ['A*', 'A*', true],
  ['*A', 'AAB', false],
  ['A*A', 'A', false],
  ['A*B*C', 'AxBxC', true],
  ['A*B*C', 'AxCxB', false],
])('[MC-04] the name %s has %s: %s', (pattern, name, matches) => {
  expect(coversVariable([pattern], name)).toBe(matches);
});

test('[MC-04] a folder is no other folder that begins with the same letters', () => {
  expect(coversPath(['/data'], '/data/a')).toBe(true);
  expect(coversPath(['/data'], '/database')).toBe(false);
  expect(coversPath(['/'], '/etc')).toBe(true);
  expect(coversPath(['/data'], 'data')).toBe(false);
});

test('[MC-04] permissions in words', () => {
  expect([
    toPermissionText(http('example.org', { pathPattern: '/a/*', methods: ['GET', 'HEAD'] })),
    toPermissionText(http('example.org')),
    toPermissionText(file('/data', 'read')),
    toPermissionText(env('A', 'B')),
  ]).toEqual(['HTTP [GET, HEAD] example.org/a/*', 'HTTP example.org', 'FILE [read] /data', 'ENV [A, B]']);
});
