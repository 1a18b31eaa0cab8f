import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { DRIVER_NAMES } from '../src/drivers/registry.ts';
import { syscallTable } from '../src/drivers/linux/syscall-numbers.ts';
import { LOUD_PERL } from './support/loud-perl.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const list = (...patterns: string[]): string[] => globSync(patterns, { cwd: ROOT }).toSorted();
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const SOURCES = list('src/**/*.{ts,js}');
const PRODUCT = SOURCES.filter((file) => !/\.(test|double)\.ts$/.test(file));
/** What is mounted into cells; the rest of guest/ tests it. */
const PERL = list('guest/*.pl', 'guest/lib/**/*.pm');
const GUEST = [...list('guest/*.{sh,bash}', 'guest/bootstrap/**/*.*', 'guest/preload/*.ts'), ...PERL];
const FOLDERS = list('src/*/tsconfig.json').map((file) => basename(dirname(file)));

const IMPORT =
  /^(?:import |(?:import|export)\b[^'"`;=]*? from )'([^'\n]+)'|\b(?:import|require)\('([^'\n]+)'\)/gm;

function importsOf(file: string): string[] {
  return [...read(file).matchAll(IMPORT)].map((match) => match[1] ?? match[2] ?? '');
}

/** The folder of src that a relative import leads to. */
function folderOf(file: string, path: string): string | undefined {
  return /^src\/([^/]+)\//.exec(normalize(join(dirname(file), path)))?.[1];
}

function referencesOf(folder: string): string[] {
  const { references } = JSON.parse(read(`src/${folder}/tsconfig.json`)) as {
    references: { path: string }[];
  };
  return references.map(({ path }) => basename(path)).toSorted();
}

function arrowsOf(folder: string): string[] {
  const files = PRODUCT.filter((file) => file.startsWith(`src/${folder}/`));
  const targets = files.flatMap((file) =>
    importsOf(file)
      .filter((path) => path.startsWith('.'))
      .map((path) => folderOf(file, path) ?? 'outside'),
  );
  return [...new Set(targets)].filter((target) => target !== folder);
}

/** Who imports which name of which file of src, `src/core/limits.ts DEFAULT_LIMITS` by the files that do. */
function importersOfNames(): Map<string, string[]> {
  const named = /^(?:import|export)(?: type)?[^'";{]*\{([^}]*)\} from '(\.[^'\n]+)'/gm;
  const importers = new Map<string, string[]>();
  for (const file of list('{src,test,bench,scripts,guest,examples}/**/*.ts')) {
    const text = read(file);
    const pairs = [...text.matchAll(named)].flatMap(([, names = '', path = '']) =>
      names.split(',').map((name) => [
        name
          .replace(/^\s*type /, '')
          .trim()
          .split(' as ')[0] ?? '',
        path,
      ]),
    );
    // Whatever is loaded later is used by all its names that occur.
    const later = [...text.matchAll(/\bimport\('(\.[^'\n]+)'\)/g)].flatMap(([, path = '']) =>
      (text.match(/\w+/g) ?? []).map((name) => [name, path]),
    );
    for (const [name = '', path = ''] of [...pairs, ...later]) {
      const key = `${join(dirname(file), path)} ${name}`;
      importers.set(key, [...(importers.get(key) ?? []), file]);
    }
  }
  return importers;
}

/** Lines with something on them that is no comment. */
function countCodeLines(text: string): number {
  const withoutBlocks = text.replace(/\/\*[\s\S]*?\*\//g, '');
  return withoutBlocks.split('\n').filter((line) => !/^\s*(\/\/.*|#.*)?$/.test(line)).length;
}

describe('layers', () => {
  /** Who may know whom. An arrow more is a decision, not a detail. */
  const ALLOWED: Readonly<Record<string, readonly string[]>> = {
    lib: [],
    core: ['lib'],
    wire: ['core', 'lib'],
    drivers: ['core', 'lib'],
    cells: ['core', 'egress', 'lib'],
    pool: ['core', 'lib'],
    runs: ['cells', 'core', 'lib', 'pool'],
    workspace: ['core', 'lib'],
    egress: ['core', 'lib', 'wire'],
    policy: ['core', 'lib'],
    sessions: ['cells', 'core', 'egress', 'lib', 'policy', 'workspace'],
    packages: ['cells', 'core', 'egress', 'lib', 'workspace'],
    workbench: ['cells', 'core', 'egress', 'lib', 'packages', 'wire', 'workspace'],
    fleet: ['cells', 'core', 'egress', 'lib', 'wire'],
    mcp: ['core', 'lib', 'packages', 'wire', 'workbench'],
    client: ['core', 'lib', 'wire'],
    http: ['core', 'lib', 'policy', 'runs', 'sessions', 'wire'],
    app: [
      'core',
      'drivers',
      'egress',
      'fleet',
      'http',
      'lib',
      'mcp',
      'packages',
      'policy',
      'pool',
      'runs',
      'sessions',
      'wire',
      'workbench',
      'workspace',
    ],
    cli: ['app', 'client', 'core', 'fleet', 'lib', 'runs', 'wire', 'workspace'],
  };

  test('every folder is a project of its own, and the compiler builds them all', () => {
    const { references } = JSON.parse(read('tsconfig.json')) as { references: { path: string }[] };
    const built = references.map(({ path }) => path).filter((path) => path.startsWith('src/'));
    expect(built.map((path) => basename(path)).toSorted()).toEqual([...FOLDERS].toSorted());
    expect(FOLDERS.toSorted()).toEqual(Object.keys(ALLOWED).toSorted());
    expect(PRODUCT.filter((file) => !FOLDERS.includes(file.split('/')[1] ?? ''))).toEqual([]);
  });

  test.each(FOLDERS)('%s refers to what it may know', (folder) => {
    expect(referencesOf(folder)).toEqual(ALLOWED[folder]);
  });

  test.each(FOLDERS)('%s imports only what it refers to', (folder) => {
    expect(arrowsOf(folder).filter((target) => !referencesOf(folder).includes(target))).toEqual([]);
  });

  test('tests and their doubles belong to no project of the product', () => {
    const projects = list('src/*/tsconfig.json').map(
      (file) => JSON.parse(read(file)) as { exclude: string[] },
    );
    for (const { exclude } of projects) expect(exclude).toEqual(['**/*.test.ts', '**/*.double.ts']);
  });

  test.each(['lib', 'core', 'wire', 'client'])('%s knows nothing of Node', (folder) => {
    const files = PRODUCT.filter((file) => file.startsWith(`src/${folder}/`));
    const words = files.filter((file) => /from 'node:|\bprocess\.[a-z]|\bBuffer\b/.test(read(file)));
    expect(words).toEqual([]);
  });
});

describe('cells', () => {
  test('are made by the ground of all use cases, and by the pool', () => {
    const makers = PRODUCT.filter(
      (file) => !/^src\/(?:drivers|cells)\//.test(file) && /\bdriver\.create\(/.test(read(file)),
    );
    expect(makers).toEqual(['src/pool/hot-cell.ts', 'src/pool/shared-cell.ts']);
  });
});

describe('drivers', () => {
  const REGISTRY = 'src/drivers/registry.ts';
  /** Modes that users know by the name of what makes their cells; each stands once. */
  const MODES = ['src/fleet/fleet-site.ts', 'src/workbench/api.ts'];
  /** What a reply looks like. */
  const EXAMPLES = ['src/http/openapi-examples.ts'];
  const NAMES = DRIVER_NAMES.join('|');
  const LITERAL = new RegExp(`(['"\`])(?:${NAMES})\\1`, 'g');
  const LIST = new RegExp(`\\b(?:${NAMES})(?:, | or | and |, else )(?:${NAMES})\\b`, 'g');

  /** Names of drivers as values, and lists of them in texts; comments may say what they like. */
  function namesIn(file: string): string[] {
    const code = read(file)
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/(^|\s)\/\/.*$/gm, '');
    return [...code.matchAll(LITERAL), ...code.matchAll(LIST)].map(([found]) => `${file}: ${found}`);
  }

  test('are known by name to themselves and to the registry only', () => {
    const others = PRODUCT.filter((file) => !file.startsWith('src/drivers/'));
    const known = others.filter((file) => ![...MODES, ...EXAMPLES].includes(file)).flatMap(namesIn);
    expect(known).toEqual([]);
  });

  test('are known by name to no script that starts or installs us', () => {
    const scripts = ['hotcell', 'mahabharatha', 'bun-runner-mcp', ...list('scripts/*.sh')];
    // A package of Debian is no driver.
    const name = new RegExp(`(?<![\\w./-])(?:${NAMES})(?![\\w./-])`, 'g');
    const known = scripts.flatMap((file) => {
      const code = read(file).replace(/(^|\s)#.*$/gm, '');
      return [...code.matchAll(name)].map(([found]) => `${file}: ${found}`);
    });
    expect(scripts.length).toBeGreaterThan(5);
    expect(known).toEqual([]);
  });

  test('do not know each other, nor does what they share know them', () => {
    const folders = DRIVER_NAMES.map((name) => `src/drivers/${name}/`);
    const arrows = PRODUCT.filter((file) => file.startsWith('src/drivers/') && file !== REGISTRY).flatMap(
      (file) =>
        importsOf(file)
          .map((path) => normalize(join(dirname(file), path)))
          .filter((path) => folders.some((folder) => path.startsWith(folder) && !file.startsWith(folder)))
          .map((path) => `${file}: ${path}`),
    );
    expect(arrows).toEqual([]);
  });

  test('each has its folder, its README and its line in the registry', () => {
    const folders = list('src/drivers/*/driver.ts').map((file) => basename(dirname(file)));
    expect(folders.toSorted()).toEqual([...DRIVER_NAMES].toSorted());
    expect(DRIVER_NAMES.map((name) => `src/drivers/${name}/README.md`).toSorted()).toEqual(
      list('src/drivers/*/README.md').filter((file) =>
        DRIVER_NAMES.some((name) => file.includes(`/${name}/`)),
      ),
    );
  });
});

describe('Perl of the guest', () => {
  test('[CX-12] needs nothing but itself and what the smallest Perl of Debian has', () => {
    const found = PERL.flatMap((file) =>
      [...read(file).matchAll(/^\s*(?:use|require)\s+([\w:]+)/gm)].map(([, name = '']) => name),
    );
    const own = list('guest/lib/**/*.pm').map((file) =>
      file.slice('guest/lib/'.length, -'.pm'.length).replaceAll('/', '::'),
    );
    const foreign = [...new Set(found)].filter((name) => !own.includes(name));
    expect(foreign.toSorted()).toEqual(['Config', 'Exporter', 'Fcntl', 'strict']);
    expect(PERL.filter((file) => !read(file).includes('\nuse strict;\n'))).toEqual([]);
  });

  test('has one table of system calls, with the numbers of the kernel', () => {
    const table = read('guest/lib/Kernel.pm') + read('guest/bootstrap/ruby-forks.rb');
    const rows = [...table.matchAll(/^ +([a-z]\w*)(?: =>|:) \[(\d+), (\d+)\],$/gm)];
    const known = (machine: string, name = ''): number | undefined =>
      syscallTable(machine)?.numbers.get(name);
    expect(rows.length).toBeGreaterThan(15);
    expect(rows.map(([, name, x64, arm64]) => [name, Number(x64), Number(arm64)])).toEqual(
      rows.map(([, name]) => [name, known('x64', name), known('arm64', name)]),
    );
    const others = PERL.filter((file) => file !== 'guest/lib/Kernel.pm');
    expect(others.filter((file) => /archname|\bsyscall\(?\s*\d/.test(read(file)))).toEqual([]);
    const calling = others.filter((file) => /\bsyscall\b/.test(read(file)));
    // The plan that this one follows has its numbers from the server.
    const planned = ['guest/lib/Nest/Walls.pm'];
    expect(calling.filter((file) => !read(file).includes('kernel_numbers('))).toEqual(planned);
  });

  test('is loud in tests, also where its stderr leads elsewhere', () => {
    const warn = "open STDERR, '>', '/dev/null'; my $nothing; my $words = 'x' . $nothing; print 'done'";
    const { stdout, stderr } = spawnSync('perl', [...LOUD_PERL, '-e', warn], { encoding: 'utf8' });
    expect([stdout, stderr]).toEqual([
      'done',
      expect.stringContaining('a warning: Use of uninitialized value'),
    ]);
  });
});

describe('an export', () => {
  const isTest = (file: string): boolean =>
    /\.(test|double)\.ts$|^test\//.test(file) || (file.startsWith('guest/') && !GUEST.includes(file));
  const declared = /^export (?:async |abstract )*(?:const|let|function\*?|class) (\w+)/gm;

  test('has a use in the product; and if only its own file uses it, a test that looks at it', () => {
    const importers = importersOfNames();
    const useless = PRODUCT.flatMap((file) => {
      const text = read(file);
      return [...text.matchAll(declared)]
        .map(([, name = '']) => name)
        .filter((name) => {
          const users = importers.get(`${file} ${name}`) ?? [];
          if (users.some((user) => !isTest(user))) return false;
          const isUsedHere =
            text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '').split(new RegExp(`\\b${name}\\b`)).length > 2;
          return users.length === 0 || !isUsedHere;
        })
        .map((name) => `${file}: ${name}`);
    });
    expect(useless).toEqual([]);
  });
});

describe('habits', () => {
  test('only src/app reads the environment', () => {
    const readers = PRODUCT.filter((file) =>
      /\bprocess\.env\b|\benv\b.*from 'node:process'/.test(read(file)),
    );
    expect(readers.filter((file) => !file.startsWith('src/app/'))).toEqual([]);
  });

  test('no file has more than 300 lines of code', () => {
    const long = [...SOURCES, ...GUEST].filter((file) => countCodeLines(read(file)) > 300);
    expect(long).toEqual([]);
  });

  test('every file is named after what it holds', () => {
    const banned = /^(.*-)?(utils?|helpers?|common|misc|types?|manager|base|impl|index)\.[a-z]+$/;
    expect([...SOURCES, ...GUEST].filter((file) => banned.test(basename(file)))).toEqual([]);
  });

  test('file names are lower-case words with hyphens', () => {
    expect(
      SOURCES.filter((file) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.(test|double))?\.(ts|js)$/.test(basename(file))),
    ).toEqual([]);
  });

  test('[SC-03] nothing passes through a shell of the host', () => {
    const shell =
      /\bexec(File)?Sync\b|\bspawnSync\b|shell:\s*true|import\s*\{[^}]*\bexec\b[^}]*\}\s*from 'node:child_process'/;
    expect(PRODUCT.filter((file) => shell.test(read(file)))).toEqual([]);
  });

  test('[SC-03] code is never made from text', () => {
    expect(PRODUCT.filter((file) => /\beval\(|new Function\(|node:vm/.test(read(file)))).toEqual([]);
  });

  test('[CX-12] what is mounted into cells needs no package', () => {
    const scripts = GUEST.filter((file) => /\.(ts|cjs)$/.test(file));
    const packages = scripts.flatMap((file) =>
      importsOf(file)
        .filter((path) => !/^(node:|bun:|\.)/.test(path))
        .map((path) => `${file}: ${path}`),
    );
    expect(scripts).not.toEqual([]);
    expect(packages).toEqual([]);
  });

  test('every package that is imported is declared, and no other', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const imported = PRODUCT.flatMap((file) => importsOf(file)).filter((path) => !/^(node:|\.)/.test(path));
    const names = imported.map((path) =>
      path
        .split('/')
        .slice(0, path.startsWith('@') ? 2 : 1)
        .join('/'),
    );
    // Run in cells, not imported.
    const interpreters = ['bun', 'node'];
    expect([...new Set([...names, ...interpreters])].toSorted()).toEqual(
      Object.keys(dependencies).toSorted(),
    );
  });
});
