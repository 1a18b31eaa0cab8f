import { afterAll, describe, expect, test } from 'vitest';
import { ImportScanner } from './import-scanner.ts';
import { LONGEST_CODE } from './scan-imports.ts';

const scanner = new ImportScanner();
afterAll(() => scanner.close());

const FILE = { fileName: 'main.ts' };
const ZOD = {
  ok: true,
  packages: [{ name: 'zod', range: undefined }],
  eager: ['zod'],
  code: `import 'zod'`,
  warnings: [],
};

describe('[MC-10] code that nobody has to trust', () => {
  test('is read in another process', async () => {
    expect(await scanner.scan(`import 'zod'`, FILE)).toEqual(ZOD);
    expect(await scanner.scan(`const x = ;`, FILE)).toMatchObject({
      ok: false,
      problem: { kind: 'syntax', line: 1, column: 11 },
    });
  });

  test.each([
    ['brackets', '['.repeat(200_000)],
    ['brackets that are closed', `${'('.repeat(100_000)}1${')'.repeat(100_000)}`],
    ['operators', `x = ${'!'.repeat(500_000)}1`],
    ['functions', `x = ${'a=>'.repeat(200_000)}1`],
    ['blocks', `${'{'.repeat(200_000)}${'}'.repeat(200_000)}`],
    ['templates', '`${'.repeat(100_000)],
    ['types', `let x: ${'Array<'.repeat(100_000)}`],
    ['sums', `x = ${'1+'.repeat(300_000)}1`],
    ['conditions', 'if(1)'.repeat(200_000)],
    ['chains', `x${'.a'.repeat(400_000)}`],
    ['else if', `if(1);${'else if(1);'.repeat(100_000)}`],
  ])('nested %s end at most that process', async (_what, code) => {
    const scan = await scanner.scan(code, FILE);
    expect(scan.ok ? 'syntax' : scan.problem.kind).toBe('syntax');
    expect(await scanner.scan(`import 'zod'`, FILE)).toEqual(ZOD);
  });

  test('a crash hits only the code that caused it', async () => {
    const codes = [`import 'zod'`, '['.repeat(200_000), `import 'zod'`, '['.repeat(200_000), `import 'zod'`];
    const scans = await Promise.all(codes.map((code) => scanner.scan(code, FILE)));
    expect(scans.map(({ ok }) => ok)).toEqual([true, false, true, false, true]);
  });

  test('what is too long is not even sent there', async () => {
    expect(await scanner.scan(' '.repeat(LONGEST_CODE + 1), FILE)).toMatchObject({ ok: false });
  });

  test('whoever takes too long is not waited for', async () => {
    await using hasty = Object.assign(new ImportScanner({ timeoutMs: 1 }), {
      [Symbol.asyncDispose]: async () => hasty.close(),
    });
    expect(await hasty.scan('a;'.repeat(500_000), FILE)).toMatchObject({ ok: false });
  });

  test('names of files mean nothing to it', async () => {
    expect(await scanner.scan(`import 'zod'`, { fileName: '/etc/passwd\0.ts' })).toEqual(ZOD);
  });
});
