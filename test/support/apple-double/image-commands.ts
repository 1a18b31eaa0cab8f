import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { IMAGE_PATH } from './bundle.ts';
import { failure, usageError } from './cli-error.ts';
import type { Image } from './configuration.ts';
import { toCompactJson, toPrettyJson } from './foundation-json.ts';
import type { ParsedCall } from './parse-arguments.ts';
import { now, planLabels } from './plan-container.ts';
import { toFullReference, type DoubleState } from './state.ts';
import { isAtLeast } from './versions.ts';

const DOCKERFILE_BYTES = 16_384;
const DIGEST_SHOWN = 12;

export function makeImage(reference: string, config: Image['config'] = {}): Image {
  const full = toFullReference(reference);
  const digest = createHash('sha256').update(full).digest('hex');
  return {
    reference: full,
    created: now(),
    descriptor: {
      digest: `sha256:${digest}`,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      size: 9218,
    },
    config: {
      Env: [IMAGE_PATH],
      Entrypoint: ['/usr/local/bin/docker-entrypoint.sh'],
      Cmd: ['/bin/sh'],
      ...config,
    },
  };
}

/** What can be pulled is what the test says. */
export function pullImage(state: DoubleState, reference: string): Image {
  const full = toFullReference(reference);
  if (!state.control.registry.map(toFullReference).includes(full)) {
    const path = full.replace(/^docker\.io\//, '').replace(/:[^:]*$/, '');
    throw failure(
      `HTTP request to https://registry.example/v2/${path}/manifests/latest failed with response: 401 Unauthorized. Reason: Unknown`,
    );
  }
  const image = makeImage(full);
  state.addImage(image);
  return image;
}

export function pullCommand(state: DoubleState, { options, positionals }: ParsedCall): number {
  const scheme = options.one('scheme');
  const schemes = isAtLeast(state.control.version, '1.3.0') ? ['http', 'https'] : ['http', 'https', 'auto'];
  if (scheme !== undefined && !schemes.includes(scheme)) throw failure(`unsupported scheme ${scheme}`);
  if (Number(options.one('max-concurrent-downloads') ?? 3) <= 0)
    throw failure('maximum number of concurrent downloads must be greater than 0');
  if (options.one('progress') !== 'none') process.stderr.write('[1/2] Fetching image 50% (1 of 2 blobs)\n');
  pullImage(state, positionals[0] ?? '');
  if (options.one('progress') !== 'none') process.stderr.write('[2/2] Unpacking image 100%\n');
  return 0;
}

function toEntry({ reference, created, descriptor, config }: Image): object {
  return {
    configuration: { creationDate: created, descriptor, name: reference },
    id: descriptor.digest.replace('sha256:', ''),
    variants: [
      {
        config: {
          architecture: 'arm64',
          config,
          created,
          history: [],
          os: 'linux',
          rootfs: { diff_ids: [descriptor.digest], type: 'layers' },
          variant: 'v8',
        },
        digest: descriptor.digest,
        platform: { architecture: 'arm64', os: 'linux', variant: 'v8' },
        size: 4_138_069,
      },
    ],
  };
}

export function inspectImages(state: DoubleState, { positionals }: ParsedCall): number {
  const missing = positionals.filter((name) => state.findImage(name) === undefined);
  if (missing.length > 0) throw failure(`image not found: ${missing.join(', ')}`);
  const entries = positionals.flatMap((name) => state.findImage(name) ?? []).map(toEntry);
  process.stdout.write(`${toPrettyJson(entries, state.control.version)}\n`);
  return 0;
}

export function listImages(state: DoubleState, { options }: ParsedCall): number {
  if (options.has('quiet') && options.has('verbose'))
    throw failure('cannot use flag --quiet and --verbose together');
  const images = state.listImages();
  const shortNames = images.map(({ reference }) => reference.replace(/^docker\.io\/(library\/)?/, ''));
  if (options.has('quiet')) process.stdout.write(shortNames.map((name) => `${name}\n`).join(''));
  else if (options.one('format') === 'json')
    process.stdout.write(`${toCompactJson(images.map(toEntry), state.control.version)}\n`);
  else {
    const rows = images.map(({ descriptor }, index) => {
      const [name = '', tag = ''] = (shortNames[index] ?? '').split(/:(?=[^:]*$)/);
      return `${name} ${tag} ${descriptor.digest.slice(7, 7 + DIGEST_SHOWN)}`;
    });
    process.stdout.write(`${['NAME TAG DIGEST', ...rows].join('\n')}\n`);
  }
  return 0;
}

export function deleteImages(state: DoubleState, { options, positionals }: ParsedCall): number {
  if (positionals.length === 0 && !options.has('all'))
    throw failure('no images specified and --all not supplied');
  const names = options.has('all') ? state.listImages().map(({ reference }) => reference) : positionals;
  const missing = names.filter((name) => !state.removeImage(name));
  for (const name of names.filter((entry) => !missing.includes(entry)))
    process.stdout.write(`${toFullReference(name)}\n`);
  if (missing.length > 0 && !options.has('force'))
    throw failure(`failed to delete one or more images: ${JSON.stringify(missing)}`);
  return 0;
}

/** Reads the recipe as far as names and copies go; runs nothing of it. */
export function buildImage(state: DoubleState, { options, positionals }: ParsedCall): number {
  const refuse = (message: string) => usageError('build', message);
  const context = resolve(positionals[0] ?? '.');
  if (!existsSync(context) || !statSync(context).isDirectory())
    throw refuse(`context dir does not exist ${context}`);
  const tags = options.all('tag');
  for (const tag of tags)
    if (!/^[a-z0-9][a-z0-9._/:@-]*$/.test(tag)) throw refuse(`invalid reference ${tag}`);
  const file =
    options.one('file') ??
    ['Dockerfile', 'Containerfile'].map((name) => join(context, name)).find(existsSync);
  if (file === undefined) throw refuse('dockerfile not found in context dir');
  if (!existsSync(file)) throw refuse(`dockerfile does not exist ${file}`);
  const text = readFileSync(file, 'utf8');
  if (Buffer.byteLength(text) >= DOCKERFILE_BYTES) throw failure('dockerfile is too large');
  const labels = planLabels(options.all('label'));
  requireBase(state, text, options.all('build-arg'));
  // Below a link nothing of the context arrives.
  const sees = (path: string): boolean =>
    realpathSync(context) === context && existsSync(join(context, path));
  for (const [, source = ''] of text.matchAll(/^COPY (\S+) \S+$/gm)) {
    process.stderr.write(`#5 [2/4] COPY ${source}\n`);
    if (!sees(source)) throw failure(`failed to compute cache key: "/${source}": not found`);
  }
  process.stderr.write('#9 exporting to oci image format\n#9 DONE 0.1s\n');
  for (const tag of tags) {
    const image = makeImage(tag, { Entrypoint: [], User: '1000:1000', WorkingDir: '/tmp', Labels: labels });
    state.addImage({ ...image, descriptor: { ...image.descriptor, annotations: { built: 'here' } } });
    process.stdout.write(`${tag.includes(':') ? tag : `${tag}:latest`}\n`);
  }
  return 0;
}

function requireBase(state: DoubleState, text: string, args: readonly string[]): void {
  const given = args.find((entry) => entry.startsWith('BASE='))?.slice('BASE='.length);
  const base = given ?? /^ARG BASE=(\S+)$/m.exec(text)?.[1] ?? '';
  process.stderr.write(`#1 [internal] load build definition\n#3 [1/4] FROM ${base}\n`);
  if (state.findImage(base) === undefined) pullImage(state, base);
}
