import { describe, expect, test } from 'vitest';
import { isAtLeast, parseContainers, parseImages, parseStats, parseStatus, parseVersion } from './shapes.ts';

describe('the version', () => {
  test.each([
    ['container CLI version 1.2.2 (build: release, commit: 0190097)\n', '1.2.2'],
    ['container CLI version 1.4.1 (build: release, commit: unspeci)\n', '1.4.1'],
    ['container CLI version 0.1.0 (build: release, commit: 0fd8692, sdk: MacOS 15)\n', '0.1.0'],
  ])('[MC-13] of %j is %s', (printed, text) => {
    expect(parseVersion(printed)?.text).toBe(text);
  });

  test.each(['', 'Docker version 27.1.1, build 6312585', 'container CLI version one'])(
    '[MC-13] %j is none',
    (printed) => {
      expect(parseVersion(printed)).toBeUndefined();
    },
  );

  test.each([
    ['1.0.0', true],
    ['1.4.1', true],
    ['2.0.0', true],
    ['0.12.3', false],
  ])('[MC-13] %s is new enough: %s', (text, expected) => {
    const version = parseVersion(`container CLI version ${text} (build: release, commit: abc)`);
    expect(version !== undefined && isAtLeast(version, [1, 0, 0])).toBe(expected);
  });
});

describe('the status', () => {
  test.each([
    ['{"apiServerVersion":"…","appRoot":"\\/Users\\/me","status":"running"}', 'running'],
    ['{"status":"running","client":{"version":"1.4.1"},"paths":{"appRoot":"/"}}', 'running'],
    ['{"status":"unregistered"}', 'unregistered'],
    ['apiserver is not running', undefined],
    ['', undefined],
  ])('[MC-13] of %s is %s, in either form', (printed, status) => {
    expect(parseStatus(printed)).toBe(status);
  });
});

const CONTAINER = {
  configuration: { id: 'a', labels: { 'hotcell.owner': 'x' }, image: { reference: 'alpine' } },
  id: 'a',
  status: { networks: [], state: 'running' },
};

describe('the list', () => {
  test('[MC-13] slashes may have a backslash before them, and there may be more than we read', () => {
    const printed = JSON.stringify([CONTAINER, { ...CONTAINER, id: 'a/b' }]).replaceAll('/', '\\/');
    expect(parseContainers(printed).map(({ id }) => id)).toEqual(['a', 'a/b']);
    expect(parseContainers('[]')).toEqual([]);
  });

  test.each([
    ['of 0.12', [{ status: 'running', networks: [], configuration: { id: 'a', labels: {} } }]],
    ['with a state that nobody knows', [{ ...CONTAINER, status: { state: 'paused' } }]],
    ['that is none', { items: [] }],
  ])('[MC-13] a list %s is refused rather than taken for empty', (_what, printed) => {
    expect(() => parseContainers(JSON.stringify(printed))).toThrow(
      expect.objectContaining({
        code: 'DRIVER_UNAVAILABLE',
        message: expect.stringContaining('container list') as string,
      }),
    );
  });

  test('[MC-13] words that are no JSON are refused', () => {
    expect(() => parseContainers('ID IMAGE OS')).toThrow(/not known/);
  });
});

test('[MC-13] an image has a name, a size and labels, if it has any', () => {
  const printed = JSON.stringify([
    {
      configuration: {
        creationDate: '2026-01-27T21:09:31Z',
        descriptor: {},
        name: 'docker.io/library/a:latest',
      },
      id: 'ab',
      variants: [
        {
          config: { config: { Labels: { x: 'y' } } },
          platform: { architecture: 'arm64', os: 'linux' },
          size: 5,
        },
        { config: {}, platform: { architecture: 'amd64', os: 'linux', variant: 'v2' }, size: 6 },
      ],
    },
  ]);
  expect(parseImages(printed)[0]?.variants.map(({ size }) => size)).toEqual([5, 6]);
});

test('[MC-13] figures that are not known are left out', () => {
  expect(parseStats('[{"id":"a","cpuUsageUsec":1500}]')).toEqual([{ id: 'a', cpuUsageUsec: 1500 }]);
});
