import { Agent } from 'node:https';
import { join } from 'node:path';
import type { DockerOptions } from 'dockerode';
import { HotcellError } from '../../core/errors.ts';
import { currentContextOf, readContext } from './docker-context.ts';
import { parseAddress, type EngineAddress } from './engine-address.ts';
import { given } from './given-text.ts';
import { readTlsFiles, TRUSTED_BY_SYSTEM, type ClientTls } from './client-tls.ts';
import { pickSocket, usualSockets } from './usual-sockets.ts';

/** The library takes an agent, though its types do not say so. */
export interface Connection extends DockerOptions {
  readonly agent: Agent | undefined;
}

/** Where an engine listens, and how we came to ask there. */
export interface Endpoint {
  /** For people: `unix:///var/run/docker.sock`. */
  readonly label: string;
  /** Which setting named it: `DOCKER_HOST`, `Docker context desktop`, `the usual socket`. */
  readonly origin: string;
  /** On this machine, as far as can be told. */
  readonly local: boolean;
  readonly connection: Connection;
}

/** What the search depends on. The app fills it from the environment; an empty text counts as not given. */
export interface EndpointSettings {
  /** Hotcell's own setting `docker.host`. */
  readonly host?: string | undefined;
  readonly DOCKER_HOST?: string | undefined;
  readonly DOCKER_CONTEXT?: string | undefined;
  readonly DOCKER_TLS_VERIFY?: string | undefined;
  readonly DOCKER_TLS?: string | undefined;
  readonly DOCKER_CERT_PATH?: string | undefined;
  readonly DOCKER_CONFIG?: string | undefined;
  readonly HOME?: string | undefined;
  readonly XDG_RUNTIME_DIR?: string | undefined;
  readonly uid?: number | undefined;
}

/**
 * SECURITY: the library reads DOCKER_HOST and its kin itself and fills in whatever is not given, so that a host from the
 * environment would win over our socket. What we do not want is therefore given as undefined.
 */
const NOTHING_FROM_ENVIRONMENT = {
  socketPath: undefined,
  host: undefined,
  port: undefined,
  username: undefined,
  ca: undefined,
  cert: undefined,
  key: undefined,
  timeout: undefined,
  agent: undefined,
} as const;

const PLAIN_PORT = 2375;
const TLS_PORT = 2376;

/** The engine that the docker command would talk to, unless our own setting names another. */
export function findEndpoint(settings: EndpointSettings): Endpoint {
  for (const [origin, value] of [
    ['docker.host', settings.host],
    ['DOCKER_HOST', settings.DOCKER_HOST],
  ] as const) {
    const text = given(value);
    if (text !== undefined) return namedByAddress(origin, text, settings);
  }
  const folder = configFolderOf(settings);
  const name = given(settings.DOCKER_CONTEXT) ?? currentContextOf(folder);
  if (name !== undefined && name !== 'default') {
    const { origin, host, tls } = readContext(folder, name);
    return toEndpoint(origin, parseAddress(host, origin), tls);
  }
  // As the docker command does: whoever asks for TLS does not mean a socket.
  const asksForTls = given(settings.DOCKER_TLS_VERIFY) ?? given(settings.DOCKER_TLS);
  if (asksForTls !== undefined) return namedByAddress('DOCKER_TLS_VERIFY', 'tcp://localhost', settings);
  return toEndpoint('the usual socket', { scheme: 'unix', path: pickSocket(usualSockets(settings)) });
}

function namedByAddress(origin: string, text: string, settings: EndpointSettings): Endpoint {
  const address = parseAddress(text, origin);
  // A socket needs no certificates, and so it does not matter whether they are in order.
  return toEndpoint(
    origin,
    address,
    address.scheme === 'unix' ? undefined : readTls(settings, address.scheme),
  );
}

/** Any text switches TLS on, `0` too: that is how the docker command reads these variables. */
function readTls(settings: EndpointSettings, scheme: 'tcp' | 'http' | 'https'): ClientTls | undefined {
  const verify = given(settings.DOCKER_TLS_VERIFY) !== undefined;
  const folder = given(settings.DOCKER_CERT_PATH);
  if (verify || given(settings.DOCKER_TLS) !== undefined) {
    const origin = verify ? 'DOCKER_TLS_VERIFY' : 'DOCKER_TLS';
    return readTlsFiles(folder ?? configFolderOf(settings), { verify, origin, needsCa: verify });
  }
  return scheme === 'https' && folder !== undefined
    ? readTlsFiles(folder, { verify: true, origin: 'DOCKER_CERT_PATH', needsCa: false })
    : undefined;
}

function configFolderOf(settings: EndpointSettings): string | undefined {
  const home = given(settings.HOME);
  return given(settings.DOCKER_CONFIG) ?? (home === undefined ? undefined : join(home, '.docker'));
}

function toEndpoint(origin: string, address: EngineAddress, tls?: ClientTls): Endpoint {
  if (address.scheme === 'unix') {
    const connection: Connection = {
      ...NOTHING_FROM_ENVIRONMENT,
      socketPath: address.path,
      protocol: 'http',
    };
    return { label: `unix://${address.path}`, origin, local: true, connection };
  }
  const security = securityOf(origin, address.scheme, tls);
  const port = address.port ?? (security === undefined ? PLAIN_PORT : TLS_PORT);
  const connection: Connection = {
    ...NOTHING_FROM_ENVIRONMENT,
    host: address.hostname,
    port,
    // SECURITY: always given, because the library guesses from the port and from the presence of certificates.
    protocol: security === undefined ? 'http' : 'https',
    agent: security === undefined ? undefined : toAgent(security),
  };
  const caveat = security?.verify === false ? ' (its certificate is not verified)' : '';
  return {
    label: `${address.scheme}://${address.hostname}:${port}${caveat}`,
    origin,
    local: isLoopback(address.hostname),
    connection,
  };
}

/** Nobody who asked for TLS gets less, and nobody who wrote http gets something else without knowing. */
function securityOf(
  origin: string,
  scheme: 'tcp' | 'http' | 'https',
  tls: ClientTls | undefined,
): ClientTls | undefined {
  if (scheme === 'https') return tls ?? TRUSTED_BY_SYSTEM;
  if (scheme === 'http' && tls !== undefined) {
    throw new HotcellError('CONFIG_INVALID', `${origin} says http://, but ${tls.origin} asks for TLS`, {
      field: origin,
      hint: `Write tcp:// or https:// in ${origin}, or do without ${tls.origin}.`,
    });
  }
  return tls;
}

/**
 * SECURITY: the library hands certificates on, but not whether to verify; the agent's options win over those of a
 * request. Said outright, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
 */
function toAgent(tls: ClientTls): Agent {
  return new Agent({
    keepAlive: true,
    ca: tls.ca,
    cert: tls.cert,
    key: tls.key,
    rejectUnauthorized: tls.verify,
  });
}

function isLoopback(hostname: string): boolean {
  return /^((.*\.)?localhost\.?|127(\.\d{1,3}){3}|\[::1\])$/i.test(hostname);
}
