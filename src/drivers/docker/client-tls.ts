import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { errnoOf } from '../../lib/errno.ts';

/** How to speak TLS with an engine. */
export interface ClientTls {
  /** What asked for it. */
  readonly origin: string;
  /** Whether the engine must prove who it is. */
  readonly verify: boolean;
  /** Who may vouch for the engine; without it, whoever the system trusts. */
  readonly ca?: Buffer | undefined;
  readonly cert?: Buffer | undefined;
  readonly key?: Buffer | undefined;
}

export const TRUSTED_BY_SYSTEM: ClientTls = { origin: 'https://', verify: true };

interface Wanted extends Pick<ClientTls, 'origin' | 'verify'> {
  /** A missing ca.pem is an error, and not the trust of the system. */
  readonly needsCa: boolean;
}

/** Reads ca.pem, cert.pem and key.pem. The last two may both be missing: not every engine wants to know who we are. */
export function readTlsFiles(folder: string | undefined, wanted: Wanted): ClientTls {
  const { origin, verify, needsCa } = wanted;
  const read = (name: string): Buffer | undefined =>
    folder === undefined ? undefined : readIfThere(join(folder, name), origin);
  const [ca, cert, key] = [read('ca.pem'), read('cert.pem'), read('key.pem')];
  const where = folder ?? 'the folder of Docker (neither DOCKER_CERT_PATH nor HOME is set)';
  if (needsCa && ca === undefined) {
    throw refuse(origin, `there is no ca.pem in ${where}`);
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw refuse(origin, `of cert.pem and key.pem only one is in ${where}`);
  }
  try {
    createSecureContext({ ca, cert, key });
  } catch (error) {
    throw refuse(origin, `the certificates in ${where} cannot be used: ${messageOf(error)}`, error);
  }
  return { origin, verify, ca, cert, key };
}

function readIfThere(path: string, origin: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return undefined;
    throw refuse(origin, `cannot read ${path}: ${messageOf(error)}`, error);
  }
}

function refuse(origin: string, problem: string, cause?: unknown): HotcellError {
  return new HotcellError('CONFIG_INVALID', `${origin}: ${problem}`, {
    field: origin,
    hint: 'Put ca.pem, and if the engine asks for them cert.pem and key.pem, into the folder that DOCKER_CERT_PATH names.',
    cause,
  });
}
