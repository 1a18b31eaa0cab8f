import { stripVTControlCharacters } from 'node:util';
import { HotcellError } from '../../core/errors.ts';
import { parseImageName, registryOf } from './image-name.ts';

/** Why an image cannot be had, as far as the words of engines tell. */
export type ImageTrouble =
  | 'disk full'
  | 'wrong platform'
  | 'not found'
  | 'login needed'
  | 'too many pulls'
  | 'not trusted'
  | 'unreachable'
  | 'registry failed'
  | 'bad name'
  | 'silent'
  | 'unknown';

/** The first that fits. The order matters: `no match for platform in manifest: not found` is no missing image. */
const WORDS: readonly (readonly [ImageTrouble, RegExp])[] = [
  ['disk full', /no space left on device|disk quota exceeded|not enough space/i],
  [
    'wrong platform',
    /no matching manifest|no match for platform|does not match the (specified|expected) platform|exec format error|no image found in .* for architecture/i,
  ],
  ['too many pulls', /toomanyrequests|too many requests|rate limit/i],
  ['not trusted', /x509:|failed to verify certificate|server gave HTTP response to HTTPS client/i],
  [
    'unreachable',
    /no such host|connection refused|connection reset|network is unreachable|no route to host|i\/o timeout|TLS handshake timeout|Client\.Timeout|deadline exceeded|dial tcp|proxyconnect|server misbehaving|unexpected EOF/i,
  ],
  [
    'bad name',
    /invalid reference format|could not parse reference|invalid repository name|must be lowercase/i,
  ],
  [
    'registry failed',
    /unexpected HTTP status: 5\d\d|unexpected status.*: 5\d\d|received unexpected HTTP status|internal server error|bad gateway|service unavailable/i,
  ],
  [
    'login needed',
    /pull access denied|unauthorized|authentication required|no basic auth credentials|access to the resource is denied|insufficient_scope|\bdenied\b|forbidden/i,
  ],
  [
    'not found',
    /manifest unknown|not found|name unknown|no such image|does not exist|did not resolve to an alias/i,
  ],
];

export function classifyImageTrouble(words: string): ImageTrouble {
  return WORDS.find(([, pattern]) => pattern.test(words))?.[0] ?? 'unknown';
}

export interface PullFailure {
  readonly image: string;
  /** If a certain one was asked for. */
  readonly platform: string | undefined;
  readonly trouble: ImageTrouble;
  /** In the words of the engine. */
  readonly reason: string;
  /** What named the image: `languages.python.image`, `--base`. */
  readonly setting: string;
  /** The image of ours that could take its place. */
  readonly recipe: string | undefined;
  /** How people reach the same engine, such as `docker`. */
  readonly docker: string;
  readonly retryAfterSeconds: number;
  readonly cause?: unknown;
}

export function toPullError(failure: PullFailure): HotcellError {
  const { image, platform, reason, retryAfterSeconds, cause } = failure;
  const what = platform === undefined ? image : `${image} for ${platform}`;
  return new HotcellError('IMAGE_UNAVAILABLE', `image ${what} cannot be pulled: ${toPlainWords(reason)}`, {
    hint: toPullHint(failure),
    retryAfterSeconds,
    cause,
  });
}

function toPullHint({ image, trouble, setting, recipe, docker }: PullFailure): string {
  const pull = `${docker} pull ${image}`;
  const name = parseImageName(image);
  const registry = name === undefined ? undefined : registryOf(name);
  const login = registry === undefined ? 'docker login' : `docker login ${registry}`;
  const host = registry ?? 'registry-1.docker.io';
  const orBuild = recipe === undefined ? '' : `; or build one of ours: hotcell build ${recipe}`;
  switch (trouble) {
    case 'not found':
      return `There is no such image: correct ${setting}${orBuild}`;
    case 'login needed':
      return `There is no such image, or it is private: correct ${setting}, or log in and pull by hand: ${login} && ${pull}`;
    case 'too many pulls':
      return `Wait, or log in and pull by hand: ${login} && ${pull}`;
    case 'not trusted':
      return `Let the engine trust ${host}: its certificate in /etc/docker/certs.d/${host}/ca.crt, or insecure-registries`;
    case 'unreachable':
      return `Check that the engine reaches ${host}: network, name server, proxy\n${toOfflineHint(image, recipe, docker)}`;
    case 'registry failed':
      return `The registry ${host} has a failure of its own: try again later, or by hand: ${pull}`;
    case 'disk full':
      return MAKE_ROOM;
    case 'wrong platform':
      return `The image is not made for the processor of the engine: set ${setting} to another${orBuild}`;
    case 'bad name':
      return `Correct ${setting}: an image is called python:3.12-slim or registry.example:5000/team/python:1`;
    case 'silent':
      return `The registry ${host} or the network hangs: try again later, or by hand: ${pull}`;
    case 'unknown':
      return `Try it by hand: ${pull}${orBuild}`;
    default:
      return trouble satisfies never;
  }
}

const MAKE_ROOM = 'Make room where the engine keeps its images: docker system df, then docker image prune';

function toOfflineHint(image: string, recipe: string | undefined, docker: string): string {
  return recipe === undefined
    ? `Without network bring it from another machine: docker save ${image} >image.tar, then ${docker} load <image.tar`
    : `Without network build from an image that is there: hotcell build ${recipe} --base IMAGE`;
}

export interface BuildFailure extends Pick<PullFailure, 'image' | 'platform' | 'reason' | 'cause'> {
  readonly recipe: string;
  readonly base: string;
  /** What the failing step printed last. */
  readonly lines: readonly string[];
  readonly silent: boolean;
}

export function toBuildError(failure: BuildFailure): HotcellError {
  const { image, base, reason, lines, cause } = failure;
  const shown = lines.map((line) => `\n  | ${line}`).join('');
  const message = `image ${image} cannot be built from ${base}: ${toPlainWords(reason)}${shown}`;
  return new HotcellError('IMAGE_UNAVAILABLE', message, { hint: toBuildHint(failure), cause });
}

function toBuildHint({ recipe, platform, reason, lines, silent }: BuildFailure): string {
  if (silent)
    return `A step of the build hangs: try again, or another base: hotcell build ${recipe} --base IMAGE`;
  const trouble = classifyImageTrouble([reason, ...lines].join('\n'));
  if (trouble === 'disk full') return MAKE_ROOM;
  if (trouble === 'wrong platform') {
    return `The engine cannot run programs for ${platform ?? 'the platform of this base'}: take another --platform or --base`;
  }
  return `Take a base that has everything: hotcell build ${recipe} --base IMAGE; images/README.md says what that is`;
}

/** SECURITY: a registry can answer with anything; nothing of it may steer the terminal or fill the log. */
export function toPlainWords(words: string): string {
  const plain = stripVTControlCharacters(words)
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    // The client library's own preface.
    .replace(/^\(HTTP code \d+\) .*? - /, '')
    .trim();
  return plain.length > 600 ? `${plain.slice(0, 600)}…` : plain;
}
