import type { ExecRequest } from '../core/exec.ts';

/** Where the relay listens. */
export const PROXY_IN_CELL = 'http://127.0.0.1:3128';
const LOCAL = 'localhost,127.0.0.1,::1';

/** Started in a cell, it is the cell's side of the gate. */
export const RELAY: ExecRequest = { argv: ['perl', '{guest}/egress.pl'], env: {} };

/**
 * What tells programs of the way out. npm, pip and git read the first ones; curl takes http_proxy in lower case only;
 * Node's own fetch needs to be told that it may.
 */
export function proxyVariables(proxy: string): Readonly<Record<string, string>> {
  return {
    http_proxy: proxy,
    https_proxy: proxy,
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    no_proxy: LOCAL,
    NO_PROXY: LOCAL,
    NODE_USE_ENV_PROXY: '1',
  };
}
