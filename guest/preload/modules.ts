// Modules of Node and Bun that reach outside, each changed once, before the code that imports it runs. ES modules see the
// changes because Bun makes their exports from these objects.
import { PermissionDenied, gate, hostOf, refuse, requireFile, requireHost } from './guard.ts';
import { gatedFetch } from './fetch.ts';
import { changeRequests, originalOf } from './requests.ts';

const PROGRAMS = 'code of this workbench cannot start programs; no permission allows it';
const RAW = 'only fetch and HTTP leave this workbench; no permission allows it';
const gateAddress = gate === undefined ? undefined : new URL(gate).host;
const FOREIGN = 'native code is not run here; no permission allows it';
const FRESH = 'it would have globals that nobody has looked at; no permission allows it';
const SERVERS = 'nobody could connect to it; no permission allows it';

const refusing = (action, why) =>
  function refused() {
    return refuse(action, why);
  };

function refuseAll(library, prefix, names, why) {
  for (const name of names) if (name in library) library[name] = refusing(`${prefix}.${name}`, why);
}

/** `check` sees the arguments first; what it throws is a rejection where promises are expected. */
function before(library, names, check, asPromise = false) {
  for (const name of names) {
    const original = library[name];
    if (typeof original !== 'function') continue;
    const checked = function checked(...args) {
      try {
        check(...args);
      } catch (error) {
        if (asPromise) return Promise.reject(error);
        throw error;
      }
      return Reflect.apply(original, this, args);
    };
    library[name] = Object.defineProperties(checked, {
      name: { value: name },
      length: { value: original.length },
    });
    // Such as fs.realpath.native and the symbol for util.promisify.
    for (const key of Reflect.ownKeys(original))
      if (!(key in checked))
        Object.defineProperty(checked, key, Object.getOwnPropertyDescriptor(original, key) ?? {});
  }
}

/** A class whose first argument names something. Some are loaded when they are asked for, and not before. */
function beforeNew(library, name, check) {
  const found = Object.getOwnPropertyDescriptor(library, name);
  if (found === undefined) return;
  let guarded;
  const make = (original) => (guarded ??= guardedClass(original, check));
  if (found.get === undefined) library[name] = make(library[name]);
  else Object.defineProperty(library, name, { ...found, get: () => make(found.get.call(library)) });
}

function guardedClass(original, check) {
  return new Proxy(original, {
    construct(target, args, caller) {
      check(...args);
      return Reflect.construct(target, args, caller);
    },
    apply(target, self, args) {
      check(...args);
      return Reflect.apply(target, self, args);
    },
  });
}

const WRITING_FLAGS = /[wa+]/;
const O_ACCMODE = 3;
const O_CREAT = 0o100;
const O_TRUNC = 0o1000;

function requireOpen(path, flags = 'r') {
  const writes =
    typeof flags === 'number'
      ? (flags & O_ACCMODE) !== 0 || (flags & (O_CREAT | O_TRUNC)) !== 0
      : typeof flags === 'string' && WRITING_FLAGS.test(flags);
  requireFile(path, writes ? 'write' : 'read');
}

const optionOf = (options, name) =>
  typeof options === 'object' && options !== null ? options[name] : undefined;

const READS = ['readFile', 'opendir', 'readdir', 'watch', 'openAsBlob'];
const WRITES =
  `writeFile appendFile truncate mkdir mkdtemp rm rmdir unlink chmod lchmod chown lchown utimes lutimes`.split(
    ' ',
  );

function changeFiles(fs, asPromise) {
  const both = (names) => (asPromise ? names : names.flatMap((name) => [name, `${name}Sync`]));
  before(fs, both(READS), (path) => requireFile(path, 'read'), asPromise);
  before(fs, both(WRITES), (path) => requireFile(path, 'write'), asPromise);
  before(fs, both(['open']), requireOpen, asPromise);
  const copies = (from, to) => {
    requireFile(from, 'read');
    requireFile(to, 'write');
  };
  before(fs, both(['copyFile', 'cp', 'link']), copies, asPromise);
  before(
    fs,
    both(['rename']),
    (from, to) => [from, to].forEach((path) => requireFile(path, 'write')),
    asPromise,
  );
  before(fs, both(['symlink']), (_target, path) => requireFile(path, 'write'), asPromise);
  if (asPromise) return;
  const reads = (path, options) => {
    if (optionOf(options, 'fd') === undefined) requireFile(path, 'read');
  };
  const writes = (path, options) => {
    if (optionOf(options, 'fd') === undefined) requireFile(path, 'write');
  };
  before(fs, ['createReadStream'], reads);
  before(fs, ['createWriteStream'], writes);
  for (const name of ['ReadStream', 'FileReadStream']) beforeNew(fs, name, reads);
  for (const name of ['WriteStream', 'FileWriteStream']) beforeNew(fs, name, writes);
}

/** A bare connection to the gate is what requests are made of; to other places there is none. */
function connecting(action, original) {
  return function connect(...args) {
    const address = addressOf(args);
    if (original !== undefined && address === gateAddress) return Reflect.apply(original, this, args);
    if (address.includes('/') || address.includes('\0')) refuse(`${action} ${address}`, RAW);
    requireHost(`${action} ${address}`, address.replace(/:(80|443)$/, ''));
    return refuse(
      `${action} ${address}`,
      'use fetch for this host: bare connections do not leave this workbench',
    );
  };
}

function addressOf(args) {
  // Node hands a list on that it has put in order itself.
  const [first, second] = Array.isArray(args[0]) ? args[0] : args;
  if (typeof first === 'object' && first !== null)
    return typeof first.path === 'string' ? first.path : `${first.host ?? 'localhost'}:${first.port}`;
  return typeof first === 'number' || /^\d+$/.test(String(first))
    ? `${typeof second === 'string' ? second : 'localhost'}:${first}`
    : String(first);
}

const naming = (action) =>
  function refused(name) {
    requireHost(`${action} ${String(name)}`, String(name));
    return refuse(`${action} ${String(name)}`, 'the gate finds the addresses of hosts: use fetch');
  };

function changeDns(dns) {
  const names = Object.keys(dns).filter((name) => /^(lookup|lookupService|reverse|resolve\w*)$/.test(name));
  for (const name of names) dns[name] = naming(`dns.${name}`);
  for (const name of ['Resolver'])
    if (name in dns) dns[name] = refusing(`dns.${name}`, 'the gate finds the addresses of hosts: use fetch');
}

function opensDatabase(path, options) {
  if (path === undefined || path === '' || path === ':memory:' || typeof path !== 'string') return;
  requireFile(
    path,
    optionOf(options, 'readonly') === true || optionOf(options, 'readOnly') === true ? 'read' : 'write',
  );
}

const CHANGES = {
  fs: (library) => {
    changeFiles(library, false);
    const found = Object.getOwnPropertyDescriptor(library, 'promises');
    const load = () => (change('fs/promises'), found.get.call(library));
    if (found?.get === undefined) change('fs/promises');
    else Object.defineProperty(library, 'promises', { get: load, configurable: true, enumerable: true });
  },
  'fs/promises': (library) => changeFiles(library, true),
  net: (library) => {
    for (const name of ['connect', 'createConnection'])
      library[name] = connecting('net.connect', library[name]);
    refuseAll(library, 'net', ['createServer'], SERVERS);
    const sockets = library.Socket.prototype;
    sockets.connect = connecting('net.connect', sockets.connect);
    library.Server.prototype.listen = refusing('net.Server.listen', SERVERS);
  },
  tls: (library) => {
    library.connect = connecting('tls.connect');
    refuseAll(library, 'tls', ['createServer'], SERVERS);
  },
  http: (library) => {
    changeRequests(library, 'http:', library.request);
    library.Server.prototype.listen = refusing('http.Server.listen', SERVERS);
  },
  https: (library) => changeRequests(library, 'https:', originalOf(require('node:http').request)),
  _http_client: () => change('http'),
  http2: (library) => {
    library.connect = (authority) => connecting('http2.connect')(hostOf(new URL(String(authority))));
    refuseAll(library, 'http2', ['createServer', 'createSecureServer'], SERVERS);
  },
  undici: (library) => {
    library.fetch = gatedFetch;
    refuseAll(
      library,
      'undici',
      ['request', 'stream', 'pipeline', 'connect', 'upgrade', 'Client', 'Pool', 'ProxyAgent', 'WebSocket'],
      RAW,
    );
  },
  ws: (library) => {
    library.WebSocket = globalThis.WebSocket;
    library.default = globalThis.WebSocket;
    refuseAll(library, 'ws', ['WebSocketServer', 'Server'], SERVERS);
  },
  dgram: (library) => refuseAll(library, 'dgram', ['createSocket', 'Socket'], RAW),
  dns: (library) => {
    changeDns(library);
    changeDns(library.promises);
  },
  child_process: (library) =>
    refuseAll(
      library,
      'child_process',
      ['ChildProcess', 'exec', 'execFile', 'execFileSync', 'execSync', 'fork', 'spawn', 'spawnSync'],
      PROGRAMS,
    ),
  cluster: (library) => refuseAll(library, 'cluster', ['fork'], PROGRAMS),
  worker_threads: (library) => refuseAll(library, 'worker_threads', ['Worker'], FRESH),
  vm: (library) => refuseAll(library, 'vm', ['createContext', 'runInNewContext', 'runInContext'], FRESH),
  inspector: (library) => refuseAll(library, 'inspector', ['open', 'Session'], SERVERS),
  'bun:ffi': (library) =>
    refuseAll(
      library,
      'bun:ffi',
      ['dlopen', 'cc', 'linkSymbols', 'CFunction', 'JSCallback', 'toBuffer', 'toArrayBuffer'],
      FOREIGN,
    ),
  'bun:sqlite': (library) => {
    beforeNew(library, 'Database', opensDatabase);
    if ('default' in library) library.default = library.Database;
  },
  sqlite: (library) => beforeNew(library, 'DatabaseSync', opensDatabase),
};

/** Modules whose changes come with those of another. */
const WITH = { 'dns/promises': 'dns' };
const done = new Set();

export const MODULES = [...Object.keys(CHANGES), ...Object.keys(WITH)];

/** Changes one module, by its name without `node:`. */
export function change(given) {
  const name = WITH[given] ?? given;
  const apply = CHANGES[name];
  if (apply === undefined || done.has(name)) return;
  done.add(name);
  try {
    apply(require(name));
  } catch (error) {
    if (error instanceof PermissionDenied) throw error;
  }
}

export function changeAll() {
  for (const name of MODULES) change(name);
}
