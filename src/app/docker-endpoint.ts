import { findEndpoint, type Endpoint } from '../drivers/docker/endpoint.ts';
import type { Config } from './config.ts';

const NAMES = [
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_TLS_VERIFY',
  'DOCKER_TLS',
  'DOCKER_CERT_PATH',
  'DOCKER_CONFIG',
] as const;

type Given = Partial<Record<(typeof NAMES)[number], string | undefined>>;

/** Taken out of the environment with the first use, so kept for the next. */
let taken: Given | undefined;

/** The client library would read some of them itself, and fail on what is none of its business. */
function takeFromEnvironment(): Given {
  const given: Given = {};
  for (const name of NAMES) {
    given[name] = process.env[name];
    delete process.env[name];
  }
  return given;
}

/** The engine of the setting docker.host, or the one that the docker command would talk to. */
export function dockerEndpoint(config: Config): Endpoint {
  const { HOME, XDG_RUNTIME_DIR } = process.env;
  taken ??= takeFromEnvironment();
  return findEndpoint({ host: config.docker.host, ...taken, HOME, XDG_RUNTIME_DIR, uid: process.getuid?.() });
}
