import { describe, expect, test } from 'vitest';
import { LONGEST_CODE, scanImports } from './scan-imports.ts';

function scan(code: string, fileName = 'main.ts') {
  const result = scanImports(code, { fileName });
  if (!result.ok) throw new Error(JSON.stringify(result.problem));
  return result;
}

function problemOf(code: string, fileName = 'main.ts') {
  const result = scanImports(code, { fileName });
  if (result.ok) throw new Error(`nothing is wrong with it: ${JSON.stringify(result.packages)}`);
  return result.problem;
}

/** `name` or `name@range`. */
const namesOf = (code: string, fileName?: string): string[] =>
  scan(code, fileName).packages.map(({ name, range }) => (range === undefined ? name : `${name}@${range}`));

describe('[MC-10] what is imported', () => {
  test.each<[string, string, string[]]>([
    ['default', `import z from 'zod'`, ['zod']],
    ['named', `import { z } from "zod"`, ['zod']],
    ['everything', `import * as z from 'zod'`, ['zod']],
    ['default and named', `import d, { n as m } from 'zod'`, ['zod']],
    ['for its effects', `import 'zod'`, ['zod']],
    ['nothing of it', `import {} from 'zod'`, ['zod']],
    ['minified', `import{z}from"zod";import*as y from'yup'`, ['yup', 'zod']],
    ['over several lines', `import {\n  a,\n  b,\n} from\n  'zod'`, ['zod']],
    ['with a comment inside', `import /* 'no' */ z /* from 'neither' */ from 'zod' // 'nor'`, ['zod']],
    ['with attributes', `import data from 'zod/package.json' with { type: 'json' }`, ['zod']],
    ['deferred', `import defer * as z from 'zod'`, ['zod']],
    ['names that are strings', `import { 'a-b' as ab } from 'zod'`, ['zod']],
    ['after a hashbang', `#!/usr/bin/env bun\nimport 'zod'`, ['zod']],
    ['with using', `import 'zod'; using x = open(); await using y = open()`, ['zod']],
    ['re-export of names', `export { z } from 'zod'`, ['zod']],
    ['re-export of all', `export * from 'zod'`, ['zod']],
    ['re-export as a name', `export * as z from 'zod'`, ['zod']],
    ['re-export of default', `export { default } from 'zod'`, ['zod']],
    ['re-export of nothing', `export {} from 'zod'`, ['zod']],
    ['dynamic', `const z = await import('zod')`, ['zod']],
    ['dynamic in a template', 'import(`zod`)', ['zod']],
    ['dynamic with options', `import('zod', { with: { type: 'json' } })`, ['zod']],
    ['dynamic, then', `import('zod').then((z) => z)`, ['zod']],
    ['dynamic, deep inside', `class A { static { if (1) { (() => import('zod'))() } } }`, ['zod']],
    ['dynamic in a default value', `function f(a = import('zod')) {}`, ['zod']],
    ['dynamic in a template literal', 'const t = `${await import("zod")}`', ['zod']],
    ['require', `const z = require('zod')`, ['zod']],
    ['require in a template', 'const z = require(`zod`)', ['zod']],
    ['require of a member', `const { z } = require('zod').default`, ['zod']],
    ['require in brackets', `if (x) { y = (require('zod')) }`, ['zod']],
    [
      'require that was made',
      `import { createRequire } from 'module';\nconst require = createRequire(import.meta.url); require('zod')`,
      ['zod'],
    ],
    ['import equals', `import z = require('zod')`, ['zod']],
    ['export import equals', `export import z = require('zod')`, ['zod']],
    ['only some are types', `import { type A, b } from 'zod'`, ['zod']],
    ['default beside types', `import z, { type A } from 'zod'`, ['zod']],
    ['sub-path', `import 'lodash/fp'`, ['lodash']],
    ['deep sub-path', `import 'rxjs/internal/operators/map.js'`, ['rxjs']],
    ['scope', `import '@scope/name'`, ['@scope/name']],
    ['scope and sub-path', `import '@scope/name/sub/path.js'`, ['@scope/name']],
    ['version', `import 'zod@3.22.4'`, ['zod@3.22.4']],
    ['version and sub-path', `import 'zod@3.22.4/v4/core'`, ['zod@3.22.4']],
    ['version of a scope', `import '@scope/name@^1.2/sub'`, ['@scope/name@^1.2']],
    ['tag', `import 'react@next'`, ['react@next']],
    ['range with spaces', `import 'zod@>=3 <4'`, ['zod@>=3 <4']],
    ['npm:', `import 'npm:zod'`, ['zod']],
    ['npm: with version and sub-path', `import 'npm:@scope/name@1/x'`, ['@scope/name@1']],
    ['twice the same', `import 'zod'; import 'zod/v4'; require('zod')`, ['zod']],
    ['with and without a version', `import 'zod'; import 'zod@3'`, ['zod@3']],
    ['escaped', String.raw`import '\x7aod'`, ['zod']],
    ['capitals of old', `import 'JSONStream'`, ['JSONStream']],
    [
      'names of things that objects have',
      `import 'constructor'; import 'hasOwnProperty'`,
      ['constructor', 'hasOwnProperty'],
    ],
    ['a package named as a builtin', `import 'punycode/'`, ['punycode']],
    [
      'dots, dashes and digits',
      `import 'socket.io-client'; import '7zip-bin'`,
      ['7zip-bin', 'socket.io-client'],
    ],
    ['a file of a package that ships types', `import 'bun-types/x'`, ['bun-types']],
    ['generics that look like tags', `const f = <T,>(x: T) => x; import('zod')`, ['zod']],
    ['an operator that looks like a pattern', `const a = b / c; import('zod'); d / e`, ['zod']],
  ])('%s', (_what, code, names) => {
    expect(namesOf(code)).toEqual(names);
  });

  test.each([
    ['JSX', `export const a = <p>import 'no'</p>`, ['react']],
    ['a fragment', `export const a = <></>`, ['react']],
    ['JSX of another package', `/** @jsxImportSource preact */ export const a = <p/>`, ['preact']],
    [
      'JSX with a function of its own',
      `/** @jsx h */ import { h } from 'hyper'; export const a = <p/>`,
      ['hyper'],
    ],
    ['JSX and a version', `import 'react@18'; export const a = <p/>`, ['react@18']],
  ])('%s', (_what, code, names) => {
    expect(namesOf(code, 'main.tsx')).toEqual(names);
  });

  test('in files of CommonJS and of JavaScript', () => {
    expect(namesOf(`const z = require('zod'); return`, 'main.cjs')).toEqual(['zod']);
    expect(namesOf(`import z from 'zod'; export default z`, 'main.mjs')).toEqual(['zod']);
    expect(namesOf(`import z from 'zod'; export default <z/>`, 'main.jsx')).toEqual(['react', 'zod']);
    expect(namesOf(`import z = require('zod')`, 'main.cts')).toEqual(['zod']);
  });
});

describe('[MC-08] what is loaded before the first line', () => {
  test.each<[string, string, string[]]>([
    ['in the order of the code', `import 'b'; import { a } from 'a/x'; a`, ['b', 'a/x']],
    ['without versions', `import z from 'npm:zod@3/v4'; z`, ['zod/v4']],
    ['each once', `import { a } from 'zod'; import { b } from 'zod'; a; b`, ['zod']],
    ['beside modules of the runtime', `import fs from 'node:fs'; import { $a } from 'zod'; $a; fs`, ['zod']],
    [
      'not what nothing is used of',
      `import { a } from 'zod'; const ab = 'a'.b; import 'yup'`,
      ['zod', 'yup'],
    ],
    ['not by a longer name', `import { a } from 'zod'; const ab = 1`, []],
    ['not types', `import type { a } from 'zod'; import { type b } from 'zod'; a; b`, []],
    ['not what may never be', `await import('zod'); require('zod')`, []],
    ['not after code of the caller', `import 'zod'; import './other.ts'; import 'yup'`, ['zod']],
    ['not after a snippet', `import 'snippets/one'; import 'zod'`, []],
    ['not with attributes', `import a from 'zod/package.json' with { type: 'text' }; a`, []],
    ['not when deferred, or beside exports', `import defer * as z from 'zod'; export * from 'yup'; z`, []],
  ])('%s', (_what, code, eager) => {
    expect(scan(code)).toMatchObject({ ok: true, eager });
  });
});

describe('[MC-10] what is not', () => {
  test.each([
    ['line comment', `// import 'zod'`],
    ['block comment', `/* import 'zod'; require('yup') */`],
    ['string', `const s = "import z from 'zod'"`],
    ['template', 'const s = `import z from "zod"; require("yup")`'],
    ['regular expression', `const r = /import 'zod'/`],
    ['type import', `import type { Z } from 'zod'`],
    ['type import of default', `import type Z from 'zod'`],
    ['type import of nothing', `import type {} from 'zod'`],
    ['names that are all types', `import { type A, type B } from 'zod'`],
    ['type re-export', `export type { Z } from 'zod'`],
    ['type re-export of all', `export type * from 'zod'`],
    ['names that are all types, re-exported', `export { type A } from 'zod'`],
    ['type import equals', `import type z = require('zod')`],
    ['alias of a namespace', `namespace A { export const b = 1 } import c = A.b`],
    ['type of a module', `type Z = import('zod').Z; let z: typeof import('zod')`],
    ['declared module', `declare module 'zod' { import x from 'yup' }`],
    ['reference', `/// <reference types="zod" />`],
    ['relative', `import './a'; import '../b'; import '.'; import '..'; require('./c')`],
    ['absolute', `import '/etc/passwd'`],
    ['of the project', `import '#internal/x'`],
    ['node:', `import 'node:fs'; import('node:test'); require('node:sqlite')`],
    ['bun:', `import 'bun:sqlite'; import 'bun:test'`],
    ['file: and data:', `import 'file:///a.js'; import 'data:text/javascript,1'`],
    [
      'builtins',
      `import 'fs'; import 'fs/promises'; require('child_process'); import 'bun'; import 'ws'; import 'undici'`,
    ],
    ['a member', `a.require('zod'); a.import('yup')`],
    ['a parameter', `(function (require, module) { require('zod') })(); ((require) => require('yup'))()`],
    ['a key', `const a = { import: 'zod', require: 'yup' }`],
    ['this module', `import.meta.url`],
    ['nothing', ''],
  ])('%s', (_what, code) => {
    expect(scan(code)).toEqual({ ok: true, packages: [], eager: [], code, warnings: [] });
  });

  test('[MC-15] snippets look like a package: whoever has them knows better', () => {
    expect(namesOf(`import { x } from 'snippets/x'`)).toEqual(['snippets']);
  });

  test('a parameter hides it only where it is known', () => {
    expect(namesOf(`function f(require) { require('no') } require('zod')`)).toEqual(['zod']);
  });
});

describe('[MC-10] names that are put in place of others', () => {
  test.each([
    [`import z from 'zod@3.22.4'; f()`, `import z from 'zod'       ; f()`],
    [`import z from "zod@3.22.4/v4";`, `import z from "zod/v4"       ;`],
    ['await import(`npm:zod@3`)', 'await import(`zod`      )'],
    [`require('npm:zod')`, `require('zod'    )`],
    [`'é😀'; import '@a/b@1'; '😀'; import 'c@2/d'`, `'é😀'; import '@a/b'  ; '😀'; import 'c/d'  `],
    [`export * from 'zod@3'`, `export * from 'zod'  `],
  ])('%s', (code, rewritten) => {
    expect(scan(code).code).toBe(rewritten);
  });

  test('nothing else moves, not even behind a byte order mark', () => {
    const code = `\ufeff#!/usr/bin/bun\r\nimport a from 'zod@3'\r\nimport('x@1')\n\n  throw new Error('here')\n`;
    const rewritten = scan(code.replace('#!/usr/bin/bun', '//')).code;
    expect(rewritten.split('\n').map((line) => line.length)).toEqual(
      code
        .replace('#!/usr/bin/bun', '//')
        .split('\n')
        .map((line) => line.length),
    );
    expect(rewritten).toContain(`import a from 'zod'  \r\nimport('x'  )\n\n  throw new Error('here')\n`);
  });

  test('what comes out is read as before, without versions', () => {
    const code = `import 'zod@3/a'; import('@s/n@~1.2.3'); require("npm:x@next/y"); export * from 'q'`;
    expect(namesOf(scan(code).code)).toEqual(['@s/n', 'q', 'x', 'zod']);
  });

  test('a literal over two lines cannot be replaced', () => {
    expect(problemOf(`1;\nimport 'zod\\\n@3'`)).toMatchObject({ kind: 'import', line: 2, column: 8 });
  });
});

describe('[MC-10] what cannot be told is said', () => {
  test.each([
    ['a variable', '1;\nawait import(name)', 2],
    ['a template that is filled in', 'await import(`zod/${name}`)', 1],
    ['a sum', '\n\nrequire("zod" + name)', 3],
    ['all of them', 'require(...names)', 1],
  ])('%s', (_what, code, line) => {
    expect(scan(code).warnings).toEqual([expect.stringMatching(new RegExp(`^line ${line}: `))]);
  });

  test('but not without end', () => {
    expect(scan('import(x);'.repeat(1000)).warnings).toHaveLength(10);
  });
});

describe('[MC-10] what stops a run before anything is installed', () => {
  test('a mistake, with its place', () => {
    expect(problemOf(`import 'zod'\nconst x = ;\n`)).toEqual({
      kind: 'syntax',
      message: 'Unexpected token',
      line: 2,
      column: 11,
      frame: '2 | const x = ;\n              ^',
    });
  });

  test('a mistake in a line without end is shown in part', () => {
    const { frame, column } = problemOf(`${'a;'.repeat(100_000)}const x = ;${'b;'.repeat(100_000)}`);
    expect(frame.length).toBeLessThan(300);
    expect(column).toBe(200_011);
  });

  test('frames obey nobody', () => {
    const { frame } = problemOf(`'\u001b[2J\u0007' ;;; const x = ;`);
    expect(frame.replace('\n', '')).not.toMatch(/\p{Cc}/u);
  });

  test.each([
    [`import 'jsr:@std/fs'`, /jsr/],
    [`import 'https://example.org/x.js'`, /addresses/],
    [`import('http://example.org/x.js')`, /addresses/],
    [`import 'github:a/b'`, /github:/],
    [`import 'npm:jsr:x'`, /jsr/],
    [`import 'git+ssh://x/y'`, /git\+ssh:/],
    [`import 'zod@https://example.org/x.tgz'`, /no version/],
    [`import 'zod@file:../x'`, /no version/],
    [`import 'zod@npm:other@1'`, /no version/],
    [`import 'zod@workspace:*'`, /no version/],
    [`import 'zod@github:a/b'`, /no version/],
    [`import 'zod@'`, /no version/],
    [`import 'zod@--registry=x'`, /no version/],
    [`import 'zod@1; rm -rf /'`, /no version/],
    [`import 'zod/../../etc'`, /leads out/],
    [`import '@scope/name/./x'`, /leads out/],
    [`import 'npm:../x'`, /no name/],
    [`import '__proto__'`, /no name/],
    [`import '_hidden'`, /no name/],
    [`import '-rf'`, /no name/],
    [`import '.hidden'`, /no name/],
    [`import '@/components/x'`, /no name/],
    [`import '@scope'`, /no name/],
    [`import '@scope/'`, /no name/],
    [`import '@../x'`, /no name/],
    [`import '~/x'`, /no name/],
    [`import ''`, /no name/],
    [`import 'with space'`, /no name/],
    [`import 'zöd'`, /no name/],
    [`import 'zоd'`, /no name/],
    [`import 'node_modules'`, /no name/],
    [`import 'a\\0b'`, /no name/],
    [`import 'a%2fb'`, /no name/],
    [`import '..\\\\x'`, /no name/],
    [`import '${'x'.repeat(300)}'`, /no name/],
    [`import 'zod@3'; import 'zod@4'`, /two versions: 3 and 4/],
    [`import 'zod@3'; require('npm:zod@3.1/x')`, /two versions/],
  ])('%s', (code, message) => {
    const problem = problemOf(code);
    expect(problem.kind).toBe('import');
    expect(problem.message).toMatch(message);
    expect(problem.message.length).toBeLessThan(300);
    expect(problem.line).toBe(1);
  });

  test('more code than anybody writes', () => {
    expect(problemOf(' '.repeat(LONGEST_CODE + 1))).toMatchObject({ kind: 'syntax' });
  });
});

describe('[MC-10] hostile code', () => {
  test.each([
    ['a hundred thousand statements', 'a;'.repeat(100_000), []],
    ['a megabyte of comment', `/*${'import "no";'.repeat(80_000)}*/ import 'zod'`, ['zod']],
    ['a megabyte in one string', `'${'x'.repeat(1_000_000)}'; import 'zod'`, ['zod']],
    ['fifty thousand imports of one', `import 'zod';`.repeat(50_000), ['zod']],
  ])('%s is read', (_what, code, names) => {
    expect(namesOf(code)).toEqual(names);
  });

  test('thousands of packages with versions are read in one go', () => {
    const code = Array.from({ length: 20_000 }, (_, index) => `import 'p${index}@1.${index}.0';`).join('\n');
    const { packages, code: rewritten } = scan(code);
    expect(packages).toHaveLength(20_000);
    expect(rewritten).toHaveLength(code.length);
  });
});
