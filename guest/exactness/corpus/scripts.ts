import { type Corpus, withArgs, withEnv, withInput } from './program.ts';

/** Programs that node and bun both run. */
export const scripts: Corpus = {
  empty: '',
  'no final newline': 'console.log(1)',
  crlf: 'console.log(1)\r\nconsole.log(JSON.stringify(`a\r\nb`))\r\n',
  bom: '\ufeffconsole.log("bom")\n',
  shebang: '#!/usr/bin/env node\nconsole.log(1); throw new Error("x")\n',
  'utf-8': 'const größe = "日本 🎉"; console.log(größe, größe.length); console.error("ä")\n',
  'nested error':
    'function f(n) { if (n) f(n - 1); else null.x }\ntry { f(2) } catch (e) { throw new TypeError("outer", { cause: e }) }\n',
  'syntax error': 'console.log("before")\nlet x = = 1\n',
  'reference error': 'undefinedName\n',
  'throw text': 'throw "text"\n',
  'throw null': 'throw null\n',
  args: withArgs('console.log(process.argv.slice(1))\n'),
  argv: 'console.log(process.argv, process.execPath)\n',
  stack: 'console.log(new Error("here").stack, Error.stackTraceLimit)\n',
  environment: withEnv(
    'console.log(Object.entries(process.env).sort(), new Date(0).getHours(), Intl.DateTimeFormat().resolvedOptions().timeZone)\nrequire("child_process").execSync("env | sort", { stdio: "inherit" })\n',
  ),
  'environment read at the start': {
    code: 'console.log(Object.entries(process.env).sort(), process.argv, Intl.DateTimeFormat().resolvedOptions().locale)\nprocess.stdin.pipe(process.stdout)\n',
    args: ['x', 'ä'],
    env: { LC_ALL: 'de_DE.UTF-8', NODE_ENV: 'production', NO_COLOR: '1' },
    stdin: 'rest',
  },
  'top-level await':
    'import { setTimeout } from "node:timers/promises"\nawait setTimeout(5)\nconsole.log("awaited", import.meta.url, import.meta.main, import.meta.filename, typeof require)\n',
  'await that fails': 'export {}\nawait Promise.reject(new Error("awaited"))\n',
  'dynamic import': 'import("./sibling.mjs").catch((e) => console.log(e.code))\n',
  sibling: {
    code: 'const s = require("./sibling"); const m = require("./lib/deep/mod.js")\nconsole.log(s.x, m, require("fs").readFileSync("data.bin"))\ns.fail()\n',
    files: {
      'sibling.js': 'exports.x = 1; exports.fail = () => { throw new Error("in sibling") }\n',
      'lib/deep/mod.js': 'module.exports = __filename\n',
      'data.bin': Uint8Array.of(0, 10, 255, 0),
    },
  },
  'sibling module': {
    code: 'import { x } from "./sibling.mjs"\nimport data from "./data.json" with { type: "json" }\nconsole.log(x, data)\n',
    files: { 'sibling.mjs': 'export const x = import.meta.url\n', 'data.json': '{"a":1}' },
  },
  'package.json': {
    code: 'import { x } from "inner"\nconsole.log(x)\n',
    files: {
      'package.json': '{"type":"module"}',
      'node_modules/inner/package.json': '{"name":"inner","main":"m.js"}',
      'node_modules/inner/m.js': 'exports.x = 2\n',
    },
  },
  'process.exit in a handler':
    'process.on("exit", (c) => { console.log("exit", c); process.exit(9) })\nthrow new Error("pending")\n',
  'exit handlers':
    'process.on("beforeExit", () => console.log("before"))\nprocess.on("exit", (c) => console.log("exit", c))\nprocess.exitCode = 3\n',
  'exit 3': 'console.log("x"); process.exit(3)\n',
  'exit 256': 'process.exit(256)\n',
  'exit 300': 'process.exit(300)\n',
  'unhandled rejection': 'Promise.reject(new Error("nobody"))\nsetTimeout(() => console.log("never"), 50)\n',
  'uncaughtException handler':
    'process.on("uncaughtException", (e, origin) => console.log("caught", e.message, origin))\nsetTimeout(() => console.log("later"), 5)\nthrow new Error("thrown")\n',
  'error in a timer': 'setTimeout(() => { throw new RangeError("timer") }, 1)\n',
  'order of queues':
    'setTimeout(() => console.log("timeout"), 0); setImmediate(() => setImmediate(() => console.log("immediate"))); process.nextTick(() => console.log("tick")); Promise.resolve().then(() => console.log("micro")); console.log("sync")\n',
  'kill TERM': 'console.log("x"); process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 5000)\n',
  'kill KILL': 'console.log("x"); process.kill(process.pid, "SIGKILL"); setTimeout(() => {}, 5000)\n',
  'kill INT': 'process.kill(process.pid, "SIGINT"); setTimeout(() => {}, 5000)\n',
  'signal handler':
    'process.on("SIGTERM", () => { console.log("term"); process.exit(8) }); process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 5000)\n',
  stdin: withInput(
    'let all = ""; process.stdin.setEncoding("utf8").on("data", (d) => (all += d)).on("end", () => console.log(JSON.stringify(all)))\n',
  ),
  'stdin, synchronously': withInput('console.log(JSON.stringify(require("fs").readFileSync(0, "utf8")))\n'),
  'stdin through a child': withInput('require("child_process").execSync("cat", { stdio: "inherit" })\n'),
  'stdin not read': withInput('console.log("no")\n'),
  'no stdin': 'process.stdin.on("data", () => {}).on("end", () => console.log("end"))\n',
  'output as large as a pipe': 'process.stdout.write("x".repeat(65536)); process.exit(0)\n',
  'output larger than a pipe': 'process.stdout.write("x".repeat(300000))\n',
  globals:
    'console.log(Object.getOwnPropertyNames(globalThis).filter((n) => n !== "Loader").sort().join())\n',
  worker:
    'const { Worker, isMainThread, parentPort } = require("worker_threads")\nif (isMainThread) new Worker(__filename).on("message", (m) => console.log("got", m)); else { parentPort.postMessage([process.argv.length, Object.keys(require.cache).length]) }\n',
  fork: 'if (process.argv[2] === "child") process.send([process.execArgv, process.argv.length]); else require("child_process").fork(__filename, ["child"]).on("message", (m) => console.log("got", m))\n',
  'own source':
    'console.log(require("fs").readFileSync(__filename, "utf8"), require("fs").statSync(__filename).mode, process.cwd(), __filename, __dirname)\n',
  'require.cache':
    'console.log(Object.keys(require.cache), require.main === module, module.id, module.children.length, module.paths.length, module.loaded, require.main.filename)\n',
  'large code': `${Array.from({ length: 2500 }, (_, i) => `const value${i} = ${i} * 2 // filler ä`).join('\n')}\nconsole.log(value2499)\nvalue0()\n`,
};
