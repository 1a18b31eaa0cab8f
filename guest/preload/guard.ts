// What the code may do, by the policy that it was started with, and how it hears that it may not.
// A courtesy: whoever goes around it meets the walls of the cell, only without a message.

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'];
const LONGEST_PATH = 2048;
/** What every program reads; nothing in there is anybody's. */
const SYSTEM_PLACES = ['/usr', '/lib', '/lib64', '/bin', '/opt/hotcell', '/etc/ssl', '/etc/localtime'];
const DEVICES = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom'];

type Rule = { host: string; pathPattern?: string; methods?: string[] };
type FileRule = { path: string; operations: string[] };
/** `asksGate`: nobody but the gate knows what of the network is allowed. */
type Policy = { http: Rule[]; file: FileRule[]; withheld: string[]; gate?: string; asksGate?: boolean };

function readPolicy(): Policy {
  const none: Policy = { http: [], file: [], withheld: [] };
  const text = process.env.HOTCELL_POLICY;
  return text === undefined ? none : { ...none, ...JSON.parse(text) };
}

export const policy = readPolicy();
/** The workdir first; the others can only be read. */
const places = (process.env.HOTCELL_PLACES ?? process.cwd())
  .split('\n')
  .filter((place) => place.startsWith('/'));
delete process.env.HOTCELL_POLICY;
delete process.env.HOTCELL_PLACES;
const [workdir = process.cwd()] = places;
export const gate = policy.gate;

export class PermissionDenied extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'PermissionDenied';
    pointAtUserCode(this);
  }
}

/** The place that Bun shows is the one in the user's code, not the one that throws here. */
function pointAtUserCode(error: Error): void {
  const lines = (error.stack ?? '').split('\n');
  const at = lines.findIndex((line) => /^\s+at /.test(line) && !line.includes(import.meta.dir));
  const [, sourceURL, line, column] = /([^\s()]+):(\d+):(\d+)\)?$/.exec(lines[at] ?? '') ?? [];
  if (sourceURL === undefined) return;
  Object.assign(error, { sourceURL, line: Number(line), column: Number(column) });
  error.stack = [`${error.name}: ${error.message}`, ...lines.slice(at)].join('\n');
}

/** Throws, and tells the server, which reads such lines and shows the permission to whoever may grant it. */
export function deny(action: string, permission: object): never {
  const grant = JSON.stringify(permission);
  require('node:fs').writeSync(2, `hotcell-denied: ${JSON.stringify({ action, permission })}\n`);
  throw new PermissionDenied(`permission denied: ${action} — grant ${grant}`);
}

/** For what no permission can allow. */
export function refuse(action: string, why: string): never {
  throw new PermissionDenied(`permission denied: ${action} — ${why}`);
}

/** Absolute, without dots; links are left to the walls. */
function absolute(path: string): string {
  const parts: string[] = [];
  for (const part of (path.startsWith('/') ? path : `${process.cwd()}/${path}`).split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

const isBelow = (path: string, folder: string): boolean =>
  path === folder || folder === '/' || path.startsWith(`${folder}/`);

/** The path that an argument of a file function names; undefined for descriptors and the like. */
export function toPath(value: unknown): string | undefined {
  if (typeof value === 'string') return value.startsWith('file:') ? fromUrl(value) : value;
  if (value instanceof URL) return value.protocol === 'file:' ? fromUrl(value.href) : undefined;
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : undefined;
}

function fromUrl(text: string): string | undefined {
  try {
    return decodeURIComponent(new URL(text).pathname);
  } catch {
    return undefined;
  }
}

export function mayUse(given: string, operation: 'read' | 'write'): boolean {
  const path = absolute(given);
  if (isBelow(path, workdir) || DEVICES.includes(path)) return true;
  if (operation === 'read' && [...places, ...SYSTEM_PLACES].some((place) => isBelow(path, place)))
    return true;
  return policy.file.some(
    (rule) => rule.operations.includes(operation) && isBelow(path, absolute(rule.path)),
  );
}

export function requireFile(value: unknown, operation: 'read' | 'write'): void {
  const path = toPath(value);
  if (path === undefined || mayUse(path, operation)) return;
  deny(`${operation} ${absolute(path)}`, { type: 'file', path: absolute(path), operations: [operation] });
}

const USUAL_PORT: Record<string, string> = { 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443' };

/** With a port if it is not the usual one. */
const hostOf = (url: URL): string =>
  url.port === '' || url.port === USUAL_PORT[url.protocol] ? url.hostname : `${url.hostname}:${url.port}`;

function matchesHost(pattern: string, host: string): boolean {
  const name = pattern.toLowerCase();
  return name.startsWith('*.') ? host.endsWith(name.slice(1)) && host.length >= name.length : host === name;
}

function matchesPath(pattern: string, path: string): boolean {
  const [head = '', ...others] = pattern.split('*');
  const tail = others.pop();
  if (tail === undefined) return path === head;
  if (!path.startsWith(head)) return false;
  let at = head.length;
  for (const piece of others) {
    const found = path.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return path.length - tail.length >= at && path.endsWith(tail);
}

/** The gate decides; this only knows beforehand what it will say. */
export function requireHttp(url: URL, method: string): void {
  if (policy.asksGate === true) return;
  const host = hostOf(url);
  const isAllowed = policy.http.some(
    (rule) =>
      matchesHost(rule.host, host) &&
      (rule.methods === undefined || rule.methods.includes(method)) &&
      (rule.pathPattern === undefined || matchesPath(rule.pathPattern, url.pathname)),
  );
  if (isAllowed) return;
  deny(`${method} ${url.protocol}//${host}${url.pathname}`, {
    type: 'http',
    host,
    ...(url.pathname.length > LONGEST_PATH ? {} : { pathPattern: url.pathname }),
    ...(METHODS.includes(method) ? { methods: [method] } : {}),
  });
}

/** For protocols in which nobody sees paths. */
export function requireHost(action: string, host: string): void {
  const isAllowed = policy.http.some(
    (rule) => matchesHost(rule.host, host) && rule.pathPattern === undefined && rule.methods === undefined,
  );
  if (!isAllowed) deny(action, { type: 'http', host });
}

export { hostOf };
