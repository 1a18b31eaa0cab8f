import { HotcellError } from '../../core/errors.ts';
import { DEFAULT_SOCKET } from './usual-sockets.ts';

/** What an address such as `tcp://10.0.0.5:2376` says. IPv6 addresses keep their brackets. */
export type EngineAddress =
  | { readonly scheme: 'unix'; readonly path: string }
  | {
      readonly scheme: 'tcp' | 'http' | 'https';
      readonly hostname: string;
      readonly port: number | undefined;
    };

/** The client library has no use for a path or a user, so there is no room for them. */
const HOST_AND_PORT = /^(?<host>\[[0-9a-f:.]+\]|[\w.-]*)(?::(?<port>\d{1,5}))?\/?$/i;

/** Reads an address as the docker command does. `origin` names the setting that it comes from. */
export function parseAddress(text: string, origin: string): EngineAddress {
  const [, scheme = 'tcp', rest = ''] = /^(?:([a-z]+):\/\/)?(.*)$/is.exec(text.trim()) ?? [];
  const known = scheme.toLowerCase();
  switch (known) {
    case 'unix':
      return { scheme: known, path: parsePath(rest, origin) };
    case 'tcp':
    case 'http':
    case 'https':
      return { scheme: known, ...parseHost(rest, origin) };
    case 'ssh':
      // SECURITY: the client library would accept every host key.
      throw refuse(origin, 'ssh:// is not supported, because the key of the host would not be verified', [
        'Forward the socket yourself: ssh -NL /tmp/engine.sock:/var/run/docker.sock USER@HOST,',
        'and name unix:///tmp/engine.sock.',
      ]);
    case 'npipe':
      throw refuse(origin, 'npipe:// is a named pipe of Windows, where Hotcell does not run', [
        'Name the socket of an engine on Linux, such as unix:///var/run/docker.sock.',
      ]);
    default:
      throw refuse(origin, `${scheme}:// is not an address of an engine`, [EXAMPLES]);
  }
}

const EXAMPLES = 'Name one such as unix:///var/run/docker.sock or tcp://10.0.0.5:2376.';

function parsePath(path: string, origin: string): string {
  if (path === '') return DEFAULT_SOCKET;
  if (path.startsWith('/') && !path.includes('\0')) return path;
  throw refuse(origin, 'the path of the socket is not absolute', [EXAMPLES]);
}

function parseHost(text: string, origin: string): { hostname: string; port: number | undefined } {
  const groups = HOST_AND_PORT.exec(text)?.groups;
  const port = groups?.['port'] === undefined ? undefined : Number(groups['port']);
  if (groups === undefined || port === 0 || (port ?? 0) > 65_535) {
    // SECURITY: the text is not repeated; it may hold a password.
    throw refuse(origin, 'not a host name or address with a port; paths and users are not supported', [
      EXAMPLES,
    ]);
  }
  const host = groups['host'] ?? '';
  return { hostname: host === '' ? 'localhost' : host, port };
}

function refuse(origin: string, problem: string, hint: readonly string[]): HotcellError {
  return new HotcellError('CONFIG_INVALID', `${origin}: ${problem}`, {
    field: origin,
    hint: hint.join(' '),
  });
}
