// Preload for code of a workbench: what reaches outside becomes a question of permission, and a refusal names the permission
// to grant. SECURITY: never call it isolation. Bun has ways around it (Bun.fetch is one); the walls of the cell hold.
// Most code asks for nothing, so whatever costs time is loaded when it is needed.
import { deny, hostOf, policy, refuse, requireFile, requireHost, toPath, mayUse } from './guard.ts';

const OWN = import.meta.dir;
const PROGRAMS = 'code of this workbench cannot start programs; no permission allows it';
const RAW = 'only fetch and HTTP leave this workbench; no permission allows it';
const SERVERS = 'nobody could connect to it; no permission allows it';
const FRESH = 'it would have globals that nobody has looked at; no permission allows it';
const FOREIGN = 'native code is not run here; no permission allows it';

const modules = () => require('./modules.ts');
const refuseAll = (target, prefix, names, why) => {
  // Without a look at what was there: some of it would be loaded by that.
  for (const name of names)
    target[name] = function refused() {
      return refuse(`${prefix}${name}`, why);
    };
};

function changeGlobals() {
  const scope = globalThis;
  const fetch = (...args) => require('./fetch.ts').gatedFetch(...args);
  fetch.preconnect = () => {};
  scope.fetch = fetch;
  const Native = scope.WebSocket;
  scope.WebSocket = new Proxy(Native, {
    construct(target, [address, ...rest], caller) {
      const url = new URL(String(address));
      requireHost(`WebSocket ${url.protocol}//${hostOf(url)}${url.pathname}`, hostOf(url));
      return Reflect.construct(target, [address, ...rest], caller);
    },
  });
  refuseAll(scope, 'new ', ['Worker', 'ShadowRealm'], FRESH);
}

/** Bun.fetch, Bun.env, Bun.dns and Bun.plugin cannot be changed. */
function changeBun() {
  const bun = Bun;
  refuseAll(bun, 'Bun.', ['spawn', 'spawnSync', '$', 'Terminal', 'openInEditor', 'cron'], PROGRAMS);
  refuseAll(
    bun,
    'Bun.',
    ['connect', 'udpSocket', 'sql', 'SQL', 'postgres', 'redis', 'RedisClient', 's3', 'S3Client'],
    RAW,
  );
  refuseAll(bun, 'Bun.', ['listen', 'serve'], SERVERS);
  refuseAll(bun, 'Bun.', ['FFI', 'registerMacro', 'secrets'], FOREIGN);
  const { file, write, mmap, build, Glob } = bun;
  const readable = (value) => {
    const path = toPath(value);
    if (path !== undefined && !path.startsWith('s3://')) requireFile(path, 'read');
  };
  bun.file = (path, ...rest) => {
    const name = toPath(path);
    const found = file(path, ...rest);
    return name === undefined || mayUse(name, 'read') ? found : guarded(found, name);
  };
  bun.write = async (target, ...rest) => {
    requireFile(target instanceof Blob ? target.name : target, 'write');
    return write(target, ...rest);
  };
  bun.mmap = (path, ...rest) => {
    requireFile(path, 'write');
    return mmap(path, ...rest);
  };
  bun.build = (options) => {
    for (const entry of options?.entrypoints ?? []) readable(entry);
    return build(options);
  };
  bun.Glob = new Proxy(Glob, {
    construct(target, args, caller) {
      const glob = Reflect.construct(target, args, caller);
      for (const name of ['scan', 'scanSync']) {
        const scan = glob[name].bind(glob);
        glob[name] = (options) => {
          readable(typeof options === 'string' ? options : (options?.cwd ?? '.'));
          return scan(options);
        };
      }
      return glob;
    },
  });
}

/** A Bun.file may be named before it is read, and be written only. */
function guarded(file, path) {
  const reads = ['text', 'json', 'arrayBuffer', 'bytes', 'formData', 'stream', 'slice'];
  const writes = ['writer', 'write', 'delete', 'unlink'];
  return new Proxy(file, {
    get(target, key) {
      const value = target[key];
      if (typeof value !== 'function') return value;
      return (...args) => {
        if (reads.includes(key)) requireFile(path, 'read');
        if (writes.includes(key)) requireFile(path, 'write');
        return Reflect.apply(value, target, args);
      };
    },
  });
}

const REACHING = /^(?:fs|fs_dir|spawn_sync|process_wrap|\w*_wrap|inspector|worker)$/;

function changeProcess() {
  const target = process;
  refuseAll(target, 'process.', ['_linkedBinding', 'dlopen'], FOREIGN);
  const { binding } = target;
  // Bun's own modules ask for some of them, such as http_parser.
  target.binding = (name) =>
    REACHING.test(name) ? refuse(`process.binding('${name}')`, FOREIGN) : binding.call(process, name);
  refuseAll(target, 'process.', ['execve'], PROGRAMS);
  const { kill, getBuiltinModule } = target;
  const own = process.pid;
  for (const name of ['kill', '_kill'])
    target[name] = (pid, signal) =>
      pid === own
        ? kill.call(process, pid, signal)
        : refuse(`process.${name}(${pid})`, 'it is not a process of this code');
  target.getBuiltinModule = (name) => {
    modules().change(String(name).replace(/^node:/, ''));
    return getBuiltinModule.call(process, name);
  };
  if (policy.withheld.length > 0) target.env = withheldVariables(target.env);
}

/** Variables that there are and that were not granted say so when they are asked for. */
function withheldVariables(env) {
  return new Proxy(env, {
    get(target, name) {
      if (typeof name === 'string' && policy.withheld.includes(name) && !(name in target))
        deny(`read the variable ${name}`, { type: 'env', variables: [name] });
      return target[name];
    },
  });
}

/** Files that are imported, and not read, are files all the same. Bun does not tell of those that are imported as text. */
function watchImports() {
  let others = false;
  const sees = (name) => {
    if (!others) {
      // A second file: nobody has looked for the modules that it needs.
      others = true;
      modules().changeAll();
    }
    if (name !== undefined) requireFile(name, 'read');
  };
  Bun.plugin({
    name: 'hotcell',
    setup(build) {
      build.onResolve({ filter: /.*/ }, ({ path, importer }) => {
        if (importer === 'bun:main' || importer.startsWith(OWN)) return undefined;
        const name = path.startsWith('file:') ? toPath(path) : path;
        const folder = importer.slice(0, importer.lastIndexOf('/'));
        if (name?.startsWith('/')) sees(name);
        else sees(name?.startsWith('.') ? `${folder}/${name}` : undefined);
        return undefined;
      });
    },
  });
  Bun.plugin.clearAll = () => {};
}

const QUOTED = /["'`](?:node:)?((?:bun:)?[a-z0-9_/]+)["'`]/g;
const IMPORTED = /\b(?:from|import|require)\s*\(?\s*["'`]([^"'`]+)["'`]/g;
const UNCERTAIN = /\b(?:import|require)\s*\(\s*(?!["'`])|\b(?:eval|Function)\b/;
/** Modules that reach nothing. */
const HARMLESS =
  /^(?:node:)?(?:assert|async_hooks|buffer|crypto|events|os|path|perf_hooks|process|punycode|querystring|readline|stream|string_decoder|test|timers|tty|url|util|zlib)(?:\/|$)|^bun(?::(?:jsc|test))?$/;

/** Changes the modules that the code names; all, where it uses packages or it cannot be told. */
async function prepareFor(main) {
  const code = await Bun.file(main)
    .text()
    .catch(() => '');
  if (!/\b(?:import|require|from|eval|Function)\b/.test(code)) return;
  const { change, changeAll, MODULES } = modules();
  const bare = (name) => name.replace(/^node:/, '');
  const isKnown = (name) => /^[./]/.test(name) || HARMLESS.test(name) || MODULES.includes(bare(name));
  const imported = [...code.matchAll(IMPORTED)].map(([, name]) => name);
  if (UNCERTAIN.test(code) || !imported.every(isKnown)) changeAll();
  else for (const [, name] of code.matchAll(QUOTED)) change(name);
}

/** The code is not there yet, and what it will import is loaded meanwhile. */
async function waitForCode() {
  const { readPackages, loadPackages, waitForGo } = require('./waiting.ts');
  delete require.cache[require.resolve('./waiting.ts')];
  const { changeAll } = modules();
  const packages = readPackages();
  // As it will be for the code that imports them.
  if (packages.length > 0) changeAll();
  changeBun();
  await loadPackages(packages);
  waitForGo();
  if (packages.length === 0) await prepareFor(Bun.main);
}

const waits = process.env.HOTCELL_WAIT !== undefined;
delete process.env.HOTCELL_WAIT;
changeGlobals();
changeProcess();
watchImports();
if (waits) await waitForCode();
else {
  await prepareFor(Bun.main);
  changeBun();
}
