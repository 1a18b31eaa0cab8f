import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { caBundlePath, caVariables } from './ca-bundle.ts';

const folder = mkdtempSync(join(tmpdir(), 'hotcell-ca-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('[RS-15] the authorities that the machine was told of come first', async () => {
  const bundle = join(folder, 'bundle.pem');
  writeFileSync(bundle, 'x');
  expect(await caBundlePath({ SSL_CERT_FILE: bundle })).toBe(bundle);
  // One that is not there is passed over.
  expect(await caBundlePath({ SSL_CERT_FILE: join(folder, 'none') })).toBe(await caBundlePath({}));
  expect(await caBundlePath({ SSL_CERT_FILE: '' })).toBe(await caBundlePath({}));
});

test('[RS-15] every program that asks for packages is told of the authorities', () => {
  const variables = caVariables('/etc/hotcell/ca.pem');
  expect(new Set(Object.values(variables))).toEqual(new Set(['/etc/hotcell/ca.pem']));
  expect(Object.keys(variables).toSorted()).toEqual([
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'NODE_EXTRA_CA_CERTS',
    'PIP_CERT',
    'REQUESTS_CA_BUNDLE',
    'SSL_CERT_FILE',
  ]);
});
