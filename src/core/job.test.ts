import { expect, test } from 'vitest';
import { relativePathProblem } from './job.ts';

test.each([
  'data.csv',
  'data/deep/july.csv',
  '.hidden',
  '..data',
  'data..',
  '...',
  'a b/ü/😀.txt',
  '-rf',
  '$(id)',
  // One name each: on Linux a backslash is a letter like others.
  'back\\slash',
  '\\',
  'a\\..\\b',
  'data/..\\..\\july.csv',
  'a'.repeat(255),
  'é'.repeat(127),
  `${'a/'.repeat(511)}ab`,
])('%j may be used', (path) => {
  expect(relativePathProblem(path)).toBeUndefined();
});

test.each([
  ['', 'must not be empty'],
  ['/', 'must be relative'],
  ['/etc/passwd', 'must be relative'],
  ['a\\/../b', 'must not have empty, . or .. parts'],
  ['..', 'must not have empty, . or .. parts'],
  ['../secret', 'must not have empty, . or .. parts'],
  ['data/../../secret', 'must not have empty, . or .. parts'],
  ['data/..', 'must not have empty, . or .. parts'],
  ['.', 'must not have empty, . or .. parts'],
  ['./data', 'must not have empty, . or .. parts'],
  ['data//july', 'must not have empty, . or .. parts'],
  ['data/', 'must not have empty, . or .. parts'],
  ['data\0.csv', 'must not contain NUL'],
  ['/\0', 'must not contain NUL'],
  ['a/'.repeat(512) + 'a', 'at most 1024 characters'],
  ['a'.repeat(256), 'more than 255 bytes'],
  ['é'.repeat(128), 'more than 255 bytes'],
  [`data/${'😀'.repeat(64)}`, 'more than 255 bytes'],
])('[CX-07] %j is refused', (path, problem) => {
  expect(relativePathProblem(path)).toContain(problem);
});
