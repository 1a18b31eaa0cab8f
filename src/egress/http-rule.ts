import { HTTP_METHODS } from '../wire/permissions.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import type { Allowed, HttpRule } from './cell-network.ts';
import { parsePattern } from './host-pattern.ts';
import { HTTP_PORT, TLS_PORT } from './host-name.ts';
import { parsePathPattern } from './path-pattern.ts';

/** Why it would allow nothing, for people; undefined for one that can be used. */
export function whyNoRule({ host, pathPattern }: HttpRule): string | undefined {
  if (parsePattern(host) === undefined) {
    return 'host must be a name such as example.org, *.example.org or example.org:8443';
  }
  if (pathPattern !== undefined && parsePathPattern(pathPattern) === undefined) {
    return 'pathPattern must begin with / and have no query, fragment, backslash or dots to resolve, encoded or not';
  }
  return undefined;
}

/** The narrowest rule that allows what was refused; undefined when no rule can. */
export function ruleFor({ code, host, port, scheme, method, path }: EgressRefusal): HttpRule | undefined {
  if (code !== 'not_allowed' && code !== 'port') return undefined;
  const usual = scheme === 'http' ? HTTP_PORT : TLS_PORT;
  const known = HTTP_METHODS.find((name) => name === method);
  return {
    host: port === usual ? host : `${host}:${port}`,
    ...(path === undefined ? {} : { pathPattern: path }),
    ...(known === undefined ? {} : { methods: [known] }),
  };
}

/** For people. */
export function describeAllowed(allowed: Allowed): string {
  if (typeof allowed === 'string') return allowed;
  const { host, pathPattern = '', methods } = allowed;
  return `${methods === undefined ? '' : `${methods.join(',')} `}${host}${pathPattern}`;
}
