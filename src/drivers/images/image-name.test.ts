import { describe, expect, test } from 'vitest';
import { parseImageName, registryOf } from './image-name.ts';

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;

describe('a name', () => {
  test.each([
    ['python', 'python', 'latest'],
    ['python:3.12-slim', 'python', '3.12-slim'],
    ['oven/bun:1-slim', 'oven/bun', '1-slim'],
    ['127.0.0.1:5000/team/python', '127.0.0.1:5000/team/python', 'latest'],
    ['127.0.0.1:5000/python:3', '127.0.0.1:5000/python', '3'],
    ['[::1]:5000/python:3', '[::1]:5000/python', '3'],
    [`python@${DIGEST}`, 'python', DIGEST],
    [`registry.example:5000/python:3.12@${DIGEST}`, 'registry.example:5000/python', DIGEST],
  ])('%s is %s with %s', (text, repository, tag) => {
    expect(parseImageName(text)).toEqual({ repository, tag });
  });

  test.each(['', ':latest', 'python:', 'python@', 'a b', '../containers', 'a/../b', 'a?b', '-flag', 'a\nb'])(
    '%j is none',
    (text) => {
      expect(parseImageName(text)).toBeUndefined();
    },
  );
});

test.each([
  ['python', undefined],
  ['oven/bun', undefined],
  ['docker.io/library/python', undefined],
  ['localhost/python', 'localhost'],
  ['ghcr.io/team/python', 'ghcr.io'],
  ['127.0.0.1:5000/python', '127.0.0.1:5000'],
])('the registry of %s is %s', (repository, registry) => {
  expect(registryOf({ repository, tag: 'latest' })).toBe(registry);
});
