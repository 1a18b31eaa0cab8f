import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TEMPLATES, toSetupScript, type Setup } from './templates.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-setup-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const SETUP: Setup = {
  command: 'echo installing; echo run >> runs; [ ! -e fail ] || exit 7; touch lock',
  manifest: ['manifest', 'lock'],
  product: 'made',
};

function runSetup(setup = SETUP): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', toSetupScript(setup)], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
const runs = (): number => {
  try {
    return readFileSync(join(folder, 'runs'), 'utf8').split('\n').length - 1;
  } catch {
    return 0;
  }
};

describe('the set-up script', () => {
  test('[RS-19] runs once for each content of the manifests, quietly otherwise', () => {
    expect([runSetup(), runs()]).toEqual([{ code: 0, stdout: '', stderr: '' }, 0]);
    write('manifest', 'one');
    expect([runSetup(), runs()]).toEqual([{ code: 0, stdout: '', stderr: 'installing\n' }, 1]);
    expect([runSetup(), runs()]).toEqual([{ code: 0, stdout: '', stderr: '' }, 1]);
    write('manifest', 'two');
    expect([runSetup().stderr, runs()]).toEqual(['installing\n', 2]);
    write('lock', 'changed by hand');
    expect([runSetup().stderr, runs()]).toEqual(['installing\n', 3]);
    expect([runSetup().stderr, runs()]).toEqual(['', 3]);
  });

  test('[RS-19] [RS-17] runs again when what it made is gone', () => {
    write('manifest', 'one');
    runSetup();
    rmSync(join(folder, 'made'), { recursive: true });
    expect([runSetup().stderr, runs()]).toEqual(['installing\n', 2]);
  });

  test('[RS-19] that fails gives its exit code, and runs again the next time', () => {
    write('manifest', 'one');
    write('fail', '');
    expect([runSetup().code, runSetup().code, runs()]).toEqual([7, 7, 2]);
    rmSync(join(folder, 'fail'));
    expect([runSetup().code, runs()]).toEqual([0, 3]);
    expect([runSetup().code, runs()]).toEqual([0, 3]);
  });

  test('[RS-19] of every template is a script that bash can read', () => {
    for (const { setup } of Object.values(TEMPLATES)) {
      if (setup === undefined) continue;
      const { status, stderr } = spawnSync('bash', ['-n', '-c', toSetupScript(setup)], { encoding: 'utf8' });
      expect([status, stderr]).toEqual([0, '']);
    }
  });

  test('[RS-19] of node really installs what a project needs', () => {
    const { setup } = TEMPLATES.node;
    if (setup === undefined) throw new Error('node has a set-up command');
    mkdirSync(join(folder, 'local'));
    write('local/package.json', '{"name": "local", "version": "1.0.0"}');
    write('package.json', '{"name": "shop", "dependencies": {"local": "file:./local"}}');
    const npm = { ...setup, command: `${setup.command} --offline --no-audit --no-fund` };
    expect(runSetup(npm).code).toBe(0);
    expect(readFileSync(join(folder, 'node_modules/local/package.json'), 'utf8')).toContain('local');
    expect(runSetup(npm)).toEqual({ code: 0, stdout: '', stderr: '' });
  });
});
