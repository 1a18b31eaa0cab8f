import { describe, expect, test } from 'vitest';
import {
  CliRefusal,
  isNameTaken,
  isNotFound,
  isServicesDown,
  toCallError,
  toStartError,
} from './cli-words.ts';

const DOWN = [
  'Error: interrupted: "XPC connection error: Connection invalid"\nEnsure container system service has been started with `container system start`.\n',
  'Error: internalError: "failed to list containers" (cause: "interrupted: "XPC connection error: Connection invalid"")\n',
];

test.each(DOWN)('[MC-13] services that are down are named, with the remedy: %j', (words) => {
  expect(isServicesDown(words)).toBe(true);
  expect(toCallError('list containers', 1, words)).toMatchObject({
    code: 'DRIVER_UNAVAILABLE',
    hint: 'Start them: container system start',
  });
});

test.each([
  'Error: internalError: "failed to delete container" (cause: "notFound: "container with ID x not found"")',
  'Error: get failed: container x not found',
  'Error: image not found: a, b',
  'Error: notFound: "image x not found"',
])('[MC-13] %s', (words) => {
  expect(isNotFound(toCallError('do it', 1, words))).toBe(true);
});

test('[MC-13] a container that runs is not one that is missing', () => {
  const words =
    'Error: internalError: "failed to delete container" (cause: "invalidState: "container x is running and can not be deleted"")';
  expect(isNotFound(toCallError('remove', 1, words))).toBe(false);
});

test.each(['Error: container with id x already exists', 'Error: container already exists: x'])(
  '[SC-02] %s: it is somebody else’s',
  (words) => {
    expect(isNameTaken(words)).toBe(true);
  },
);

describe('a cell that does not start', () => {
  test.each([
    ['DRIVER_UNAVAILABLE', DOWN[0] ?? ''],
    ['DRIVER_UNAVAILABLE', 'Error: write failed: No space left on device'],
    ['CELL_START_FAILED', 'Error: failed to start process (cause: "failed to find target executable perl")'],
    ['CELL_START_FAILED', 'Error: minimum memory amount allowed is 200 MiB (got 1 bytes)'],
  ])('[MC-13] %s: %s', (code, words) => {
    expect(toStartError('cell', 'img', words).code).toBe(code);
  });

  test('[MC-13] an image without the agent’s interpreter is named', () => {
    const words = 'Error: failed to start process (cause: "failed to find target executable perl")';
    expect(toStartError('cell', 'img', words).message).toBe(
      'image img has no perl, which the agent of a cell needs',
    );
  });
});

test('[SC-03] nothing that the CLI says steers a terminal or fills a log', () => {
  const refusal = new CliRefusal('x', 1, `Error: \u001B[31mred\u0007${'y'.repeat(5000)}`);
  expect(refusal.words).not.toMatch(/\p{Cc}/u);
  expect(refusal.words.length).toBeLessThan(700);
});
