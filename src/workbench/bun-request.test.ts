import { describe, expect, test } from 'vitest';
import { fillRequest } from '../core/cell.ts';
import type { Permission } from '../wire/permissions.ts';
import { isGranted, toBunRequest } from './bun-request.ts';

const policyOf = (request: ReturnType<typeof toBunRequest>): unknown =>
  JSON.parse(request.verbatim?.env['HOTCELL_POLICY'] ?? '');
const env = (...variables: string[]): Permission => ({ type: 'env', variables });

describe('the command of Bun', () => {
  test('[MC-02] reaches nothing without a permission', () => {
    const request = toBunRequest({ permissions: [], values: { TOKEN: 'secret' }, network: undefined });
    expect(request.reach).toEqual({ read: [], write: [], port: undefined, programs: false });
    expect(JSON.stringify(request)).not.toContain('secret');
    expect(policyOf(request)).toEqual({ http: [], file: [], withheld: ['TOKEN'] });
    expect(request.argv).toEqual(expect.arrayContaining(['--no-install', '--no-env-file', '--no-macros']));
  });

  test('[MC-04] has what was granted, and no more', () => {
    const permissions: Permission[] = [
      env('APP_*'),
      { type: 'file', path: '/data', operations: ['read'], description: 'why' },
      { type: 'file', path: '/out', operations: ['read', 'write'] },
      { type: 'http', host: 'a.example', pathPattern: '/v1/*', methods: ['GET'], description: 'why' },
    ];
    const values = { APP_KEY: 'k', OTHER: 'secret' };
    const network = { variables: { HTTP_PROXY: 'http://127.0.0.1:1' }, port: 1 };
    const request = toBunRequest({ permissions, values, network });
    expect(request.reach).toEqual({ read: ['/data', '/out'], write: ['/out'], port: 1, programs: false });
    expect(request.verbatim?.env).toMatchObject({ APP_KEY: 'k', HTTP_PROXY: 'http://127.0.0.1:1' });
    expect(JSON.stringify(request)).not.toContain('secret');
    expect(policyOf(request)).toEqual({
      http: [{ host: 'a.example', pathPattern: '/v1/*', methods: ['GET'] }],
      file: [
        { path: '/data', operations: ['read'] },
        { path: '/out', operations: ['read', 'write'] },
      ],
      withheld: ['OTHER'],
      gate: 'http://127.0.0.1:1',
    });
  });

  test('[MC-04] takes no placeholder from values or paths', () => {
    const values = { A: '{guest}', B: '{workdir}' };
    const permissions: Permission[] = [env('*'), { type: 'file', path: '/x/{guest}', operations: ['read'] }];
    const filled = fillRequest(
      toBunRequest({ permissions, values, network: undefined }),
      { workdir: '/w', guest: '/g', code: '/c', packages: '/p' },
      {},
    );
    expect(filled.env).toMatchObject({
      A: '{guest}',
      B: '{workdir}',
      HOME: '/w',
      BUN_INSTALL_CACHE_DIR: '/p',
    });
    expect(filled.env['HOTCELL_POLICY']).toContain('/x/{guest}');
    expect(filled.argv.at(-1)).toBe('/c/main.ts');
  });

  test('[MC-04] a variable of ours cannot be replaced by a granted one', () => {
    const values = { HOTCELL_POLICY: '{"http":[{"host":"*"}]}', HOTCELL_PLACES: '/' };
    const request = toBunRequest({ permissions: [env('*')], values, network: undefined });
    expect(policyOf(request)).toMatchObject({ http: [] });
    expect(request.verbatim?.env).not.toHaveProperty('HOTCELL_PLACES');
  });
});

describe('names of variables', () => {
  test.each([
    ['A', 'A', true],
    ['A', 'AB', false],
    ['A*', 'AB', true],
    ['*_KEY', 'MY_KEY', true],
    ['*_KEY', 'KEY', false],
    ['A*C*', 'ABCD', true],
    ['A*A', 'A', false],
    ['.', 'A', false],
  ])('[MC-04] %s for %s is %s', (pattern, name, expected) => {
    expect(isGranted([env(pattern)], name)).toBe(expected);
  });

  test('[MC-04] many stars take no time', () => {
    expect(isGranted([env('*a'.repeat(120))], 'a'.repeat(200).concat('b'))).toBe(false);
  });
});
