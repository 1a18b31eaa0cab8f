// Requests of node:http and node:https through the gate, which sees their paths and methods, as those of fetch.
import { gate, refuse, requireHttp } from './guard.ts';

const OURS = ['host', 'hotcell-scheme', 'proxy-authorization'];
const originals = new WeakMap();

/** What a function was before it was changed. */
export const originalOf = (changed) => originals.get(changed) ?? changed;

/** `send` is the request of node:http. */
export function changeRequests(library, scheme, send) {
  const request = (...args) => {
    const asked = toRequest(scheme, args);
    requireHttp(asked.url, asked.method);
    if (gate === undefined)
      refuse(`${asked.method} ${asked.url.href}`, 'there is no way to the network in this workbench');
    return send(throughGate(asked), asked.onResponse);
  };
  originals.set(request, send);
  library.request = request;
  library.get = (...args) => {
    const sent = request(...args);
    sent.end();
    return sent;
  };
  library.ClientRequest = new Proxy(library.ClientRequest ?? request, {
    construct: (_target, args) => request(...args),
  });
}

function toRequest(scheme, args) {
  const [first, second] = args;
  const given = typeof first === 'string' || first instanceof URL ? new URL(first) : undefined;
  const options = (given === undefined ? first : typeof second === 'object' ? second : undefined) ?? {};
  if (options.socketPath !== undefined)
    refuse(`a request over the socket ${options.socketPath}`, 'no permission allows sockets');
  const host = options.hostname ?? options.host ?? given?.hostname ?? 'localhost';
  const port = options.port ?? given?.port ?? '';
  const path = options.path ?? (given === undefined ? '/' : given.pathname + given.search);
  const origin = `${options.protocol ?? given?.protocol ?? scheme}//${host}${port === '' ? '' : `:${port}`}`;
  return {
    url: new URL(path, origin),
    method: String(options.method ?? 'GET').toUpperCase(),
    options,
    onResponse: args.findLast((argument) => typeof argument === 'function'),
  };
}

function throughGate({ url, method, options }) {
  const { hostname, port, username, password } = new URL(gate);
  const { Agent } = require('node:http');
  const key = btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  return {
    ...options,
    protocol: 'http:',
    hostname,
    host: hostname,
    port,
    method,
    path: `http://${url.host}${url.pathname}${url.search}`,
    headers: {
      ...toHeaders(options.headers),
      host: url.host,
      ...(username === '' ? {} : { 'proxy-authorization': `Basic ${key}` }),
      ...(url.protocol === 'https:' ? { 'hotcell-scheme': 'https' } : {}),
    },
    agent: new Agent({ keepAlive: false }),
    createConnection: undefined,
  };
}

function toHeaders(given = {}) {
  const list = Array.isArray(given)
    ? given.flatMap((value, index) => (index % 2 === 0 ? [[value, given[index + 1]]] : []))
    : Object.entries(given);
  return Object.fromEntries(list.filter(([name]) => !OURS.includes(String(name).toLowerCase())));
}
