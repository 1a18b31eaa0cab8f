import { expect, test } from 'vitest';
import { isNameTaken, toOtherName } from './container-name.ts';
import { EngineRefusal } from './engine.ts';

test.each([
  ['code-runner-lua-00ff', /^code-runner-lua-[0-9a-f]{4}$/],
  ['mahabharatha-worker-0', /^mahabharatha-worker-0-[0-9a-f]{4}$/],
  ['worker-12', /^worker-12-[0-9a-f]{4}$/],
  ['nicecafe', /^nicecafe-[0-9a-f]{4}$/],
])('[FL-01] a name like %s that is free', (name, other) => {
  expect(toOtherName(name)).toMatch(other);
});

test.each([
  ['Docker', 409, 'Conflict. The container name "/x" is already in use by container "1d"', true],
  [
    'Podman 4',
    500,
    'creating container storage: the container name "x" is already in use: that name is already in use',
    true,
  ],
  ['another failure', 500, 'no space left on device', false],
])('[FL-01] what %s says, with status %i, about a name', (_who, status, words, taken) => {
  expect(isNameTaken(new EngineRefusal('create a container', status, words))).toBe(taken);
  expect(isNameTaken(new Error(words))).toBe(false);
});
