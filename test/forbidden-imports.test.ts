import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

describe('a forbidden import', () => {
  let copy = '';
  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), 'hotcell-architecture-'));
    cpSync(join(ROOT, 'src'), join(copy, 'src'), { recursive: true });
    for (const file of ['package.json', 'tsconfig.base.json']) cpSync(join(ROOT, file), join(copy, file));
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  });
  afterAll(() => rmSync(copy, { recursive: true }));

  function compile(folder: string): { status: number | null; stdout: string } {
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { status, stdout } = spawnSync(process.execPath, [compiler, '-b', join(copy, 'src', folder)], {
      encoding: 'utf8',
      cwd: copy,
    });
    return { status, stdout };
  }

  test.each([
    ['core', '../drivers/oci/driver.ts', 'OciDriver'],
    ['http', '../drivers/oci/driver.ts', 'OciDriver'],
    ['drivers', '../pool/hot-pool.ts', 'HotPool'],
    ['lib', '../core/errors.ts', 'HotcellError'],
    ['core', './hand-clock.double.ts', 'HandClock'],
    ['runs', '../pool/scripted-driver.double.ts', 'ScriptedDriver'],
  ])('from %s to %s does not compile', (folder, target, name) => {
    const file = join(copy, 'src', folder, 'forbidden.ts');
    writeFileSync(file, `import { ${name} } from '${target}';\nexport const forbidden = ${name};\n`);
    try {
      const { status, stdout } = compile(folder);
      expect(status).not.toBe(0);
      expect(stdout).toContain('TS6307');
      expect(stdout).toContain(join('/src', folder, target));
    } finally {
      rmSync(file);
    }
  });

  test('is the only thing that stops the compiler', () => {
    expect(compile('http')).toEqual({ status: 0, stdout: '' });
  });
});
