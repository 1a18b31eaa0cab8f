import { expect, test } from 'vitest';
import { dockerCommandFor } from './docker-command.ts';

test.each([
  ['the usual socket', 'unix:///var/run/docker.sock', 'docker'],
  ['the usual socket', 'unix:///run/user/1000/docker.sock', 'docker -H unix:///run/user/1000/docker.sock'],
  ['DOCKER_HOST', 'tcp://10.0.0.5:2376', 'docker'],
  ['Docker context desktop', 'unix:///home/a/.docker/desktop/docker.sock', 'docker'],
  ['docker.host', 'tcp://10.0.0.5:2375 (its certificate is not verified)', 'docker -H tcp://10.0.0.5:2375'],
])('%s at %s is reached by %s', (origin, label, command) => {
  expect(dockerCommandFor({ origin, label })).toBe(command);
});
