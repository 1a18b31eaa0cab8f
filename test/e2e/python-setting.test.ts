import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { testThatNeeds, whyNotOci } from '../support/needs.ts';
import { ociOptions } from '../support/package-site.ts';
import { makeStateDirectory, removeFolders } from '../support/server.ts';
import { MAIN } from '../support/command.ts';

const stateDirectory = makeStateDirectory();
const folder = mkdtempSync(join(tmpdir(), 'hotcell-python-'));
const code = join(folder, 'main.py');
// Small, built, and not a package that systems have.
writeFileSync(code, 'import iniconfig\nprint(iniconfig.__name__)\n');
afterAll(() => {
  rmSync(folder, { recursive: true });
  removeFolders(stateDirectory);
});

const needsCells = testThatNeeds(await whyNotOci(ociOptions(stateDirectory)));

function run(...settings: readonly string[]): { code: number | null; stdout: string; stderr: string } {
  const given = [`stateDir=${stateDirectory}`, `packages.dir=${join(folder, 'packages')}`, ...settings];
  const options = given.flatMap((setting) => ['--set', setting]);
  const args = [MAIN, 'run', '--driver', 'oci', ...options, code];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: folder });
  return { code: status, stdout, stderr };
}

needsCells(
  '[MC-10] what Python code imports is installed where the operator turns it on, and only there',
  () => {
    expect(run().stderr).toContain('No module named');
    expect(run('packages.python=true')).toMatchObject({ code: 0, stdout: 'iniconfig\n' });
  },
);
