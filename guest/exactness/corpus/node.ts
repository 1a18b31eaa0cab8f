import { type Corpus } from './program.ts';
import { scripts } from './scripts.ts';

export const nodePrograms: Corpus = {
  ...scripts,
  'kill SEGV': 'process.kill(process.pid, "SIGSEGV"); setTimeout(() => {}, 5000)\n',
  abort:
    'console.log("x"); process.exitCode = 2; process.kill(process.pid, "SIGABRT"); setTimeout(() => {}, 5000)\n',
  'process object':
    'console.log(Object.keys(process).sort().join(), process.execArgv, process._preload_modules, process.argv0, process.title, process.listenerCount("exit"))\n',
  'path caches':
    'const M = require("module"); console.log(Object.keys(M._pathCache), Object.keys(M._cache), M.globalPaths, process.mainModule === module, require.main.parent, module.parent)\n',
  'active resources': 'console.log(process.getActiveResourcesInfo(), process.memoryUsage().rss > 0)\n',
  'resources before output': 'const r = process.getActiveResourcesInfo(); console.log(r)\n',
  'open descriptors':
    'require("fs").writeSync(1, require("fs").readdirSync("/proc/self/fd").join() + process.umask())\n',
  'unsettled await': 'export {}\nawait new Promise(() => {})\n',
  'node:test in a child': {
    code: 'const { run } = require("node:test")\nrun({ files: [__dirname + "/t.js"] }).on("test:pass", (e) => console.log("pass", e.name)).on("test:fail", (e) => console.log("fail", e.name))\n',
    files: { 't.js': 'require("node:test")("inner", () => {})\n' },
  },
  'typescript by extension': {
    code: 'require("./t.ts")\n',
    files: { 't.ts': 'const x: number = 1; console.log(x)\n' },
  },
  'execArgv in a worker':
    'const { Worker, isMainThread } = require("worker_threads")\nif (isMainThread) new Worker(__filename); else console.log(process.execArgv, Object.keys(require.cache))\n',
};
