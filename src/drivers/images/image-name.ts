export interface ImageName {
  /** Where it is: `python`, `registry.example:5000/team/python`. */
  readonly repository: string;
  /** Which one: a tag, or a digest such as `sha256:…`. Never empty: without it an engine would pull all tags. */
  readonly tag: string;
}

/** Letters, digits and the marks of image names; no `..`, which would leave the path of the engine's API. */
const PLAIN = /^(?!.*\.\.)[A-Za-z0-9[][A-Za-z0-9[\]._:/@-]*$/;

/** Undefined for what cannot be the name of an image. */
export function parseImageName(text: string): ImageName | undefined {
  if (!PLAIN.test(text)) return undefined;
  const [named = '', digest] = text.split('@', 2);
  // A colon before the last slash belongs to the port of the registry.
  const colon = named.lastIndexOf(':');
  const hasTag = colon > named.lastIndexOf('/');
  const repository = hasTag ? named.slice(0, colon) : named;
  const tag = digest ?? (hasTag ? named.slice(colon + 1) : 'latest');
  return repository === '' || tag === '' ? undefined : { repository, tag };
}

/** The registry that has to be asked, as `docker login` names it. Undefined for Docker Hub. */
export function registryOf({ repository }: ImageName): string | undefined {
  const [first = '', ...rest] = repository.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return isHost && first !== 'docker.io' ? first : undefined;
}
