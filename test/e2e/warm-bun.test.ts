import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openWorkbenches } from '../../src/app/mcp/open-workbenches.ts';
import { makeWorkbenchTools } from '../../src/app/mcp/workbench-tools.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import type { Packages } from '../../src/packages/api.ts';
import type { CodeRequest, CodeResult, Workbench } from '../../src/workbench/api.ts';
import { WorkbenchSettings } from '../../src/workbench/settings.ts';
import type { KeptWorkbenches } from '../../src/workbench/workbenches.ts';
import { waitFor } from '../support/leftovers.ts';
import { waitUntilNothingIsLeft } from '../support/workbench-cells.ts';
import {
  makeSiteWords,
  removeSiteFolders,
  request,
  toConfig,
  type SiteWords,
} from '../support/workbench-site.ts';

const ME = { tenant: 'me' };
const MODULES = 'store/k/node_modules';

const MARK = `mark-${process.pid}-${Date.now()}`;

/** Processes that have the variable. */
function countMarked(): number {
  const isMarked = (pid: string): boolean => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`MARK=${MARK}\0`);
    } catch {
      return false;
    }
  };
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isMarked(name)).length;
}

const manifest = (more: object): string => JSON.stringify({ version: '1.0.0', ...more });
const FILES: Readonly<Record<string, string>> = {
  'seven/package.json': manifest({ name: 'seven', type: 'module', main: 'index.js' }),
  'seven/index.js':
    'globalThis.loads = (globalThis.loads ?? 0) + 1; export const seven = 7; export { six } from "./six.js";',
  'seven/six.js': 'export const six = 6;',
  'old/package.json': manifest({ name: 'old', main: 'index.js' }),
  'old/index.js': 'globalThis.loads = (globalThis.loads ?? 0) + 1; exports.old = typeof require;',
  'both/package.json': manifest({
    name: 'both',
    exports: { '.': { import: './index.mjs', require: './index.cjs' }, './sub': './sub.js' },
  }),
  'both/index.mjs': 'globalThis.loads = (globalThis.loads ?? 0) + 1; export const kind = "module";',
  'both/index.cjs': 'globalThis.loads = (globalThis.loads ?? 0) + 1; exports.kind = "script";',
  'both/sub.js': 'exports.sub = __filename.split("/").slice(-2).join("/");',
  'loud/package.json': manifest({ name: 'loud', main: 'index.js' }),
  'loud/index.js': 'console.log("loud"); exports.x = 1;',
  'failing/package.json': manifest({ name: 'failing', main: 'index.js' }),
  'failing/index.js': 'throw new Error("on purpose");',
  'leaving/package.json': manifest({ name: 'leaving', main: 'index.js' }),
  'leaving/index.js': 'process.exit(9);',
  'late/package.json': manifest({ name: 'late', main: 'index.js' }),
  'late/index.js': 'setTimeout(() => console.log("late"), 20); exports.x = 1;',
  'reading/package.json': manifest({ name: 'reading', main: 'index.js' }),
  'reading/index.js':
    'const fs = require("fs"); exports.text = fs.existsSync("in.txt") ? fs.readFileSync("in.txt", "utf8") : "none";',
};

function layPackages(folder: string): void {
  for (const [path, text] of Object.entries(FILES)) {
    const file = join(folder, MODULES, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

const packagesOf = (folder: string): Packages => ({
  folder,
  prepare: () => Promise.resolve({ key: 'k', modules: MODULES, packages: [], fromStore: true }),
});

function open(words: SiteWords, mode: 'container' | 'preload'): Promise<KeptWorkbenches> {
  const config = toConfig(words);
  const folder = join(words.dataDir, 'packages');
  layPackages(folder);
  return openWorkbenches(config, {
    mode,
    settings: WorkbenchSettings.parse({ grantable: { env: ['MARK'] } }),
    snippetsFolder: join(words.dataDir, 'snippets'),
    values: { MARK },
    tools: {
      ...makeWorkbenchTools(config, SILENT_LOG),
      openPackages: () => Promise.resolve(packagesOf(folder)),
    },
    log: SILENT_LOG,
  });
}

describe.each(['container', 'preload'] as const)('in %s mode', (mode) => {
  let words: SiteWords;
  let opened: KeptWorkbenches;
  let bench: Workbench;

  beforeAll(async () => {
    words = makeSiteWords('oci');
    opened = await open(words, mode);
    bench = opened.open(ME);
  });
  afterAll(async () => {
    await opened.close();
    await waitUntilNothingIsLeft(words);
    removeSiteFolders(words);
  });

  const run = async (code: string, more: Partial<CodeRequest> = {}): Promise<CodeResult> => {
    const result = await bench.run(request(code, more)).result;
    // The next one is started when this one has been answered.
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    return result;
  };
  /** What waits is of no use when files come from outside. */
  const runCold = async (code: string, more: Partial<CodeRequest> = {}): Promise<CodeResult> => {
    await bench.files.write([{ path: 'outside.txt', content: Buffer.from('x') }]);
    return run(code, more);
  };
  const wasStartedBefore = async (code: string): Promise<boolean> => {
    const now = performance.timeOrigin + performance.now();
    const { stdout } = await run(`${code}; console.log(performance.timeOrigin)`);
    return Number(stdout) < now;
  };

  test('[MC-08] the next run finds a process that was started before it, unless files came', async () => {
    for (const code of ['', 'import { seven } from "seven"; seven']) {
      await runCold(code);
      // How long a process takes to start is not known.
      await waitFor('a run finds one', () => wasStartedBefore(code));
      await bench.files.write([{ path: 'outside.txt', content: Buffer.from('y') }]);
      expect(await wasStartedBefore(code)).toBe(false);
    }
  });

  test('[MC-08] code that imports something else starts a process of its own', async () => {
    await runCold('import { seven } from "seven"; seven');
    expect(await wasStartedBefore('import { old } from "old"; old')).toBe(false);
    expect(await wasStartedBefore('')).toBe(false);
  });

  test.each<[string, string, Partial<CodeRequest>?]>([
    [
      'where and what it is',
      `console.log(process.argv, process.execArgv, process.argv0, process.title, Bun.main, import.meta.path);
       console.log(import.meta.main, import.meta.dir, process.cwd(), Object.entries(process.env).sort(), require.main === module);
       console.log(Object.keys(require.cache).sort(), Object.keys(globalThis), process.listenerCount("exit"));`,
    ],
    ['stdin as text', 'console.log(JSON.stringify(await Bun.stdin.text()))', { stdin: 'go\none\ntwo' }],
    [
      'stdin in lines',
      'for await (const line of console) console.log("line", line)',
      { stdin: 'one\ntwo\n' },
    ],
    ['stdin as a stream', 'process.stdin.on("data", (d) => console.log(String(d)))', { stdin: 'one\n' }],
    ['no stdin', 'console.log(JSON.stringify(await Bun.stdin.text()))'],
    [
      'the order of events',
      `import { readFileSync } from "fs";
       setTimeout(() => console.log("timeout")); setImmediate(() => console.log("immediate"));
       process.nextTick(() => console.log("tick")); Promise.resolve().then(() => console.log("promise"));
       queueMicrotask(() => console.log("microtask")); console.log("now");
       await 1; console.log("after"); process.on("exit", () => console.log("exit"));`,
    ],
    [
      'the order of ticks without any module',
      'process.nextTick(() => console.log("tick")); Promise.resolve().then(() => console.log("promise"));',
    ],
    ['an uncaught error', 'function fail(): never {\n  throw new TypeError("no");\n}\n\nfail();'],
    ['a rejection', 'const later = async () => { await 1;\n throw new Error("no") };\nlater(); await 2;'],
    ['stacks', 'console.log(new Error("one").stack); await 1; console.log(new Error("two").stack)'],
    ['an exit code', 'console.error("bye"); process.exit(7)'],
    ['a file that is not there', 'import "./nothing.ts"'],
    ['its memory', 'console.log(Object.keys(process.memoryUsage()), process.memoryUsage().rss > 0)'],
    ['types', 'enum Kind { One = 1 }\nconsole.log(Kind[1] satisfies string)'],
    ['a file of the machine', 'console.log((await Bun.file("/etc/shadow").text()).length)'],
    ['a program', 'require("child_process").execFileSync("nothing-of-this-name")'],
    ['a module that is hooked', 'import { readFileSync } from "node:fs"; readFileSync("/etc/shadow")'],
    [
      'packages',
      'import { seven, six } from "seven"; import { old } from "old"; console.log(seven, six, old, loads)',
    ],
    [
      'a package with two forms',
      'import { kind } from "both"; import { sub } from "both/sub"; console.log(kind, sub, loads)',
    ],
    ['a package and its error', 'import { seven } from "seven";\n\nthrow new Error(String(seven))'],
    [
      'a package, required as well',
      'import { kind } from "both"; console.log(kind, require("both").kind, loads)',
    ],
    ['a package that prints', 'import { x } from "loud"; console.log("then", x)'],
    ['a package that throws', 'import "failing"; console.log("never")'],
    ['a package that leaves', 'import "leaving"; console.log("never")'],
    ['a package with a timer', 'import { x } from "late"; console.log("first", x)'],
    [
      'a package that nothing is used of',
      'import { seven } from "seven"; console.log(typeof globalThis["loads"])',
    ],
  ])('[MC-08] a warm run is like a cold one: %s', async (_what, code, more = {}) => {
    const seen = ({ durationMs: _duration, phases: _phases, ...result }: CodeResult): object => result;
    const cold = seen(await runCold(code, more));
    expect(seen(await run(code, more))).toEqual(cold);
    // What was found out about a package makes no difference, either.
    expect(seen(await run(code, more))).toEqual(cold);
  });

  test('[MC-08] what a package reads when it is loaded is as new as the run', async () => {
    const code = 'import { text } from "reading"; console.log(text)';
    expect((await run(code)).stdout).toBe('none\n');
    await bench.files.write([{ path: 'in.txt', content: Buffer.from('first') }]);
    expect((await run(code)).stdout).toBe('first\n');
    const files = [{ path: 'in.txt', content: Buffer.from('second') }];
    expect((await run(code, { files })).stdout).toBe('second\n');
    await run('await Bun.write("in.txt", "third")');
    expect((await run(code)).stdout).toBe('third\n');
    expect((await run(`${code}; require("fs").writeFileSync("in.txt", "fourth")`)).stdout).toBe('third\n');
    expect((await run(code)).stdout).toBe('fourth\n');
  });

  test('[MC-15] snippets are those of the run', async () => {
    const { snippets } = opened;
    const code = 'import { n } from "snippets/number"; console.log(n)';
    await snippets.save(ME, { name: 'number', code: '// @description n\nexport const n = 1;' });
    expect((await run(code)).stdout).toBe('1\n');
    await snippets.save(ME, { name: 'number', code: '// @description n\nexport const n = 2;' });
    expect((await run(code)).stdout).toBe('2\n');
    await snippets.save(ME, { name: 'other', code: '// @description n\nexport const n = 3;' });
    expect((await run('import { n } from "snippets/other"; console.log(n)')).stdout).toBe('3\n');
  });

  test('[MC-06] time counts from the word to go on, and ends it', async () => {
    await run('');
    await sleep(600);
    expect(await run('console.log("on")', { timeoutMs: 500 })).toMatchObject({ status: 'ok' });
    expect(await run('for (;;);', { timeoutMs: 500 })).toMatchObject({ status: 'timeout' });
    expect(await run('console.log("on")')).toMatchObject({ status: 'ok', stdout: 'on\n' });
  });

  test('[MC-05] a permission that came since counts', async () => {
    const { permissions } = bench;
    await run('');
    permissions.grant({ type: 'http', host: 'example.org' });
    const code = 'console.log(process.env.HTTP_PROXY !== undefined)';
    expect((await run(code)).stdout).toBe('true\n');
    permissions.revoke({ type: 'http', host: 'example.org' });
    expect((await run(code)).stdout).toBe('false\n');
  });

  test('[MC-08] nothing waits any more when the session has ended', async () => {
    const other = opened.open(ME);
    other.permissions.grant({ type: 'env', variables: ['MARK'] });
    expect((await other.run(request('console.log(process.env.MARK)')).result).stdout).toBe(`${MARK}\n`);
    await waitFor('one waits', () => countMarked() === 1);
    await other.close();
    expect(countMarked()).toBe(0);
  });

  test('[MC-05] what waits with a variable that was taken back is gone when the next run begins', async () => {
    bench.permissions.grant({ type: 'env', variables: ['MARK'] });
    await run('');
    await waitFor('one waits', () => countMarked() === 1);
    bench.permissions.revoke({ type: 'env', variables: ['MARK'] });
    const started = bench.run(request('console.log("begun"); await Bun.stdin.text(); await Bun.sleep(2000)'));
    await waitFor('it runs', () => started.output().stdout === 'begun\n');
    expect(countMarked()).toBe(0);
    await started.cancel();
  });
});
