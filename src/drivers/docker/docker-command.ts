import type { Endpoint } from './endpoint.ts';

/** How people call the docker command so that it talks to the same engine as we do. */
export function dockerCommandFor({ origin, label }: Pick<Endpoint, 'origin' | 'label'>): string {
  const findsItItself = /^(DOCKER_|Docker context)/.test(origin) || label === 'unix:///var/run/docker.sock';
  // What follows the address in a label is for people.
  return findsItItself ? 'docker' : `docker -H ${label.replace(/ .*/, '')}`;
}
