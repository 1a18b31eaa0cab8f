import { createHash } from 'node:crypto';
import type { PackageSpec } from './api.ts';

/** Everything that decides what an installation results in. */
export interface InstallRequest {
  /** Which registry: npm's or Python's. */
  readonly ecosystem: string;
  /** By name, each once. */
  readonly specs: readonly PackageSpec[];
  /** Where packages come from: the variables of the preset, and its hosts. */
  readonly registry: {
    readonly variables: Readonly<Record<string, string>>;
    readonly hosts: readonly string[];
  };
  /** For what they are installed, such as `bun 1.4.4 linux x64`: some packages differ. */
  readonly platform: string;
  /** Versions that are younger are not taken. */
  readonly minimumReleaseAgeSeconds: number;
}

/** What an unnamed version stands for. */
export const NEWEST = 'latest';

/** The name of a request: the same one always has the same. */
export function requestId(request: InstallRequest): string {
  const { ecosystem, specs, registry, platform, minimumReleaseAgeSeconds } = request;
  const variables = Object.entries(registry.variables).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const canonical = [
    ecosystem,
    specs.map(({ name, range }) => [name, range ?? NEWEST]),
    variables,
    registry.hosts.toSorted(),
    platform,
    minimumReleaseAgeSeconds,
  ];
  return sha256(JSON.stringify(canonical));
}

/** The name of a set: what is in it, and for what it was made. */
export function setKey(platform: string, lock: string): string {
  return sha256(`${platform}\n${lock}`);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
