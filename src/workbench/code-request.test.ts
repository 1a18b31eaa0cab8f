import { describe, expect, test } from 'vitest';
import { BUILT_IN_LANGUAGES, type Language } from '../core/language.ts';
import type { CellNetwork } from '../egress/cell-network.ts';
import type { Permission } from '../wire/permissions.ts';
import { toLanguageRequest, type CodePlan } from './code-request.ts';

const network = {
  variables: { HTTP_PROXY: 'http://127.0.0.1:3128' },
  port: undefined,
} as unknown as CellNetwork;
const WHOLE: Permission = { type: 'http', host: 'example.org' };
const PATH: Permission = { ...WHOLE, pathPattern: '/v1/*' };
const METHOD: Permission = { ...WHOLE, methods: ['GET'] };
const PRELOAD = '{guest}/preload/gate-fetch.ts';

function plan(language: string, more: Partial<CodePlan>): ReturnType<typeof toLanguageRequest> {
  return toLanguageRequest({
    language: BUILT_IN_LANGUAGES[language] as Language,
    main: 'main.ts',
    cwd: '/w',
    permissions: [],
    values: {},
    network,
    variables: network.variables,
    ...more,
  });
}

describe('the command of a language', () => {
  test.each([
    ['nothing is allowed', []],
    ['a whole host is', [WHOLE]],
  ])('[MC-04] is the bare one when %s', (_when, permissions) => {
    const { argv, env } = plan('typescript', { permissions });
    expect([argv, env]).toEqual([
      ['bun', '--no-install', '{code}/main.ts'],
      { BUN_INSTALL_CACHE_DIR: '{packages}', ...network.variables },
    ]);
  });

  test.each([
    ['paths', PATH],
    ['methods', METHOD],
  ])('[MC-04] shows requests to the gate where it has to see %s', (_what, narrow) => {
    const { argv, env } = plan('typescript', { permissions: [WHOLE, narrow] });
    expect(argv).toEqual(['bun', '--preload', PRELOAD, '--no-install', '{code}/main.ts']);
    expect(JSON.parse(env['HOTCELL_POLICY'] ?? '')).toEqual({
      asksGate: true,
      gate: 'http://127.0.0.1:3128',
    });
  });

  test('[MC-04] but not where there is no gate, or no Bun', () => {
    expect(plan('typescript', { permissions: [PATH], network: undefined }).argv).not.toContain('--preload');
    expect(plan('python', { permissions: [PATH] }).argv).not.toContain('--preload');
  });

  test('[MC-04] what was granted changes neither the way to the gate nor whom it trusts', () => {
    const values = { HTTP_PROXY: 'http://evil', SSL_CERT_FILE: '/evil', HOTCELL_POLICY: '{}', A: 'b' };
    const variables = { ...network.variables, SSL_CERT_FILE: '{workdir}/.ca' };
    const { env, verbatim } = plan('typescript', { permissions: [PATH], values, variables });
    expect([env['SSL_CERT_FILE'], verbatim?.env]).toEqual(['{workdir}/.ca', { A: 'b' }]);
  });
});
