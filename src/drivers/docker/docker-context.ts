import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { errnoOf } from '../../lib/errno.ts';
import { readTlsFiles, type ClientTls } from './client-tls.ts';
import { given } from './given-text.ts';

/** What a context of the docker command says about its engine. */
interface DockerContext {
  readonly origin: string;
  readonly host: string;
  readonly tls: ClientTls | undefined;
}

const ConfigFile = z.object({ currentContext: z.string().optional() });
const MetaFile = z.object({
  Endpoints: z.object({
    docker: z.object({ Host: z.string().min(1), SkipTLSVerify: z.boolean().default(false) }),
  }),
});

const SETTLE = 'or name the engine with the setting docker.host.';

/** The context that `docker context use` chose. */
export function currentContextOf(folder: string | undefined): string | undefined {
  if (folder === undefined) return undefined;
  const path = join(folder, 'config.json');
  const text = readText(path);
  if (text === undefined) return undefined;
  // Going on without it might lead to another engine than the one that was chosen.
  return given(
    parse(ConfigFile, text, { path, hint: `Correct or remove ${path}, ${SETTLE}` }).currentContext,
  );
}

export function readContext(folder: string | undefined, name: string): DockerContext {
  const origin = `Docker context ${name}`;
  // The docker command stores contexts under the hash of their name.
  const id = createHash('sha256').update(name).digest('hex');
  const path = join(folder ?? '', 'contexts/meta', id, 'meta.json');
  const text = folder === undefined ? undefined : readText(path);
  if (folder === undefined || text === undefined) {
    const where = folder === undefined ? 'HOME is not set' : `not in ${folder}`;
    throw new HotcellError('CONFIG_INVALID', `there is no Docker context "${name}" (${where})`, {
      field: origin,
      hint: `Choose another: docker context ls shows them, docker context use or DOCKER_CONTEXT picks one; ${SETTLE}`,
    });
  }
  const hint = `Make it anew: docker context rm ${name}, then docker context create ${name}; ${SETTLE}`;
  const { Host: host, SkipTLSVerify: skip } = parse(MetaFile, text, { path, hint }).Endpoints.docker;
  const files = readTlsFiles(join(folder, 'contexts/tls', id, 'docker'), {
    origin,
    verify: !skip,
    needsCa: false,
  });
  const hasFiles = files.ca !== undefined || files.cert !== undefined;
  return { origin, host, tls: hasFiles || skip ? files : undefined };
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return undefined;
    throw new HotcellError('CONFIG_INVALID', `cannot read ${path}: ${messageOf(error)}`, {
      field: path,
      hint: `Make it readable, ${SETTLE}`,
      cause: error,
    });
  }
}

function parse<T>(schema: z.ZodType<T>, text: string, { path, hint }: { path: string; hint: string }): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
    throw new HotcellError('CONFIG_INVALID', `${path} cannot be understood: ${why}`, {
      field: path,
      hint,
      cause: error,
    });
  }
}
