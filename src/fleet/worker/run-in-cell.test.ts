import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cell } from '../../core/cell.ts';
import { PROMISES } from '../../core/enforcement.ts';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { SubprocessDriver } from '../../drivers/subprocess/driver.ts';
import { KnownSecrets } from '../environment/known-secrets.ts';
import { Secret } from '../environment/secret.ts';
import { runInCell } from './run-in-cell.ts';

const TOKEN = 'sk-ant-oat01-0123456789';
const stateDirectory = mkdtempSync(join(tmpdir(), 'hotcell-run-in-cell-'));
const driver = new SubprocessDriver({
  stateDirectory,
  guest: fileURLToPath(new URL('../../../guest', import.meta.url)),
  tools: [],
  weaker: PROMISES,
});
let cell: Cell;
beforeAll(async () => {
  cell = await driver.create({ name: 'masked', kind: 'worker', limits: DEFAULT_LIMITS });
});
afterAll(async () => {
  await cell.dispose();
  await driver.close();
  for (const folder of [stateDirectory, `${stateDirectory}-subprocess`])
    rmSync(folder, { recursive: true, force: true });
});

test('[FL-08] a secret is taken out before a stream is cut, so that no part of it is kept', async () => {
  const secrets = new KnownSecrets();
  secrets.add([new Secret('sk-the-one-before'), new Secret(TOKEN)]);
  const script = `printf 'one of before: sk-the-one-before %s' '${TOKEN}${'.'.repeat(500)}${TOKEN}'; printf '${TOKEN}' >&2`;
  const request = { argv: ['sh', '-c', script], env: {} } as const;
  const parts = new RegExp(
    Array.from({ length: TOKEN.length - 7 }, (_, at) => TOKEN.slice(at, at + 8)).join('|'),
  );
  for (let keptBytes = 60; keptBytes < 110; keptBytes += 7) {
    let seen = '';
    const { stdout, stderr } = await runInCell(cell, request, {
      keptBytes,
      makeRedactor: () => secrets.redactor(),
      onOutput: (_, bytes) => void (seen += Buffer.from(bytes).toString()),
    });
    for (const text of [stdout, seen]) expect(text).not.toMatch(parts);
    expect(stdout).toMatch(/bytes cut[^]*\.\[secret\]$/);
    expect(stderr).toBe('[secret]');
    expect(seen.split('[secret]')).toHaveLength(5);
  }
});
