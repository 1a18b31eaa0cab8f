import { describe, expect, test } from 'vitest';
import {
  classifyImageTrouble,
  toBuildError,
  toPlainWords,
  toPullError,
  type ImageTrouble,
} from './image-problem.ts';

/** Recorded from Docker 20.10; those of newer engines, of containerd's image store and of Podman are from bug reports. */
const RECORDED: readonly (readonly [ImageTrouble, string])[] = [
  ['not found', 'manifest for python:9.99 not found: manifest unknown: manifest unknown'],
  ['not found', 'manifest unknown'],
  [
    'not found',
    'failed to resolve reference "docker.io/library/python:9.99": docker.io/library/python:9.99: not found',
  ],
  ['not found', 'reading manifest 9.99 in docker.io/library/python: manifest unknown'],
  [
    'login needed',
    "pull access denied for nosuch, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
  ],
  [
    'login needed',
    'failed to resolve reference "docker.io/a/b:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
  ],
  ['login needed', 'Head "https://ghcr.io/v2/a/b/manifests/1": unauthorized: authentication required'],
  ['login needed', 'Get "http://127.0.0.1:5000/v2/a/manifests/1": no basic auth credentials'],
  [
    'unreachable',
    'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 10.255.255.53:53: no such host',
  ],
  ['unreachable', 'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused'],
  [
    'unreachable',
    'Get "https://registry-1.docker.io/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)',
  ],
  ['unreachable', 'Get "https://registry-1.docker.io/v2/": net/http: TLS handshake timeout'],
  [
    'unreachable',
    'failed to resolve reference "docker.io/library/a:1": failed to do request: Head "https://registry-1.docker.io/v2/library/a/manifests/1": dial tcp: lookup registry-1.docker.io: no such host',
  ],
  [
    'unreachable',
    'Get "https://registry-1.docker.io/v2/": proxyconnect tcp: dial tcp 10.0.0.1:3128: i/o timeout',
  ],
  [
    'too many pulls',
    'toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit',
  ],
  ['not trusted', 'Get "https://10.0.0.5:5000/v2/": x509: certificate signed by unknown authority'],
  ['not trusted', 'Get "https://10.0.0.5:5000/v2/": http: server gave HTTP response to HTTPS client'],
  ['registry failed', 'received unexpected HTTP status: 500 Internal Server Error'],
  [
    'registry failed',
    'error pulling image configuration: download failed after attempts=6: received unexpected HTTP status: 500 Internal Server Error',
  ],
  [
    'registry failed',
    'failed to copy: httpReadSeeker: failed open: unexpected status code https://a/v2/b/blobs/sha256:0: 503 Service Unavailable',
  ],
  [
    'disk full',
    'failed to register layer: Error processing tar file(exit status 1): write /usr/lib/x.so: no space left on device',
  ],
  ['disk full', 'write /var/lib/docker/tmp/GetImageBlob1: no space left on device'],
  ['wrong platform', 'no matching manifest for linux/arm64/v8 in the manifest list entries'],
  [
    'wrong platform',
    'no matching manifest for linux/arm64/v8 in the manifest list entries: no match for platform in manifest: not found',
  ],
  [
    'wrong platform',
    'image with reference a:1 was found but does not match the specified platform: wanted linux/arm64, actual: linux/amd64',
  ],
  ['bad name', 'invalid reference format: repository name must be lowercase'],
  ['unknown', 'something that nobody has said before'],
];

test.each(RECORDED)('%s: %s', (trouble, words) => {
  expect(classifyImageTrouble(words)).toBe(trouble);
});

const failure = {
  image: 'registry.example:5000/team/python:1',
  platform: undefined,
  reason: 'as the engine says',
  setting: 'languages.python.image',
  recipe: 'python',
  docker: 'docker',
  retryAfterSeconds: 15,
} as const;

describe('the error of a pull', () => {
  test.each<[ImageTrouble, RegExp]>([
    ['not found', /correct languages\.python\.image.*hotcell build python/],
    [
      'login needed',
      /docker login registry\.example:5000 && docker pull registry\.example:5000\/team\/python:1/,
    ],
    ['too many pulls', /docker login registry\.example:5000 && docker pull/],
    ['not trusted', /\/etc\/docker\/certs\.d\/registry\.example:5000\/ca\.crt/],
    ['unreachable', /reaches registry\.example:5000.*\n.*hotcell build python --base IMAGE/],
    ['registry failed', /registry\.example:5000 has a failure of its own/],
    ['disk full', /docker image prune/],
    ['wrong platform', /set languages\.python\.image.*hotcell build python/],
    ['bad name', /Correct languages\.python\.image/],
    ['silent', /hangs.*docker pull registry\.example:5000\/team\/python:1/],
    ['unknown', /docker pull.*hotcell build python/],
  ])('%s: names the image, the reason, and what to do', (trouble, hint) => {
    const error = toPullError({ ...failure, trouble });
    expect(error.message).toBe(
      'image registry.example:5000/team/python:1 cannot be pulled: as the engine says',
    );
    expect(error).toMatchObject({ code: 'IMAGE_UNAVAILABLE', status: 503, retryAfterSeconds: 15 });
    expect(error.hint).toMatch(hint);
  });

  test('nothing is said of a recipe where there is none', () => {
    for (const trouble of new Set(RECORDED.map(([name]) => name))) {
      expect(toPullError({ ...failure, trouble, recipe: undefined }).hint).not.toContain('hotcell build');
    }
  });

  test('an image of Docker Hub needs no name of a registry', () => {
    const { hint } = toPullError({ ...failure, image: 'python:3', trouble: 'login needed' });
    expect(hint).toContain('docker login && docker pull python:3');
  });
});

describe('the error of a build', () => {
  const build = {
    image: 'hotcell-bun:latest',
    recipe: 'bun',
    base: 'debian:12',
    platform: undefined,
    reason: "The command '/bin/sh /tmp/prepare.sh bun' returned a non-zero code: 1",
    lines: ['Step 5/11 : RUN …', 'prepare.sh: this base lacks bun, and no package of apt-get brings it'],
    silent: false,
  };

  test('shows what the step printed last', () => {
    const error = toBuildError(build);
    expect(error.message.split('\n')).toEqual([
      `image hotcell-bun:latest cannot be built from debian:12: ${build.reason}`,
      '  | Step 5/11 : RUN …',
      '  | prepare.sh: this base lacks bun, and no package of apt-get brings it',
    ]);
    expect(error).toMatchObject({ code: 'IMAGE_UNAVAILABLE', hint: expect.stringContaining('--base IMAGE') });
  });

  test.each([
    ['a full disk', { lines: ['sed: write error: No space left on device'] }, 'docker image prune'],
    ['programs of another processor', { reason: 'exec /bin/sh: exec format error' }, '--platform'],
    ['silence', { silent: true }, 'hangs'],
  ])('%s has a hint of its own', (_what, change, hint) => {
    expect(toBuildError({ ...build, ...change }).hint).toContain(hint);
  });
});

test('words of a registry cannot steer a terminal, and are not endless', () => {
  expect(toPlainWords('(HTTP code 404) unexpected - a\u001b[31mred\u001b[0m\r\n\u0007word ')).toBe(
    'ared word',
  );
  expect(toPlainWords('x'.repeat(5000))).toHaveLength(601);
});
