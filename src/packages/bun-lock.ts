import * as z from 'zod';
import { isPackageName, isRange, quoted } from './package-spec.ts';
import { parseJson } from '../lib/parse-json.ts';

/** One line of a lock file. */
export interface LockedPackage {
  readonly name: string;
  readonly version: string;
  /** Undefined: from the registry that is set. */
  readonly url: string | undefined;
  /** Below the folder of the set. */
  readonly path: string;
  /** In the first row of `node_modules`, under the name that the code uses. */
  readonly isTop: boolean;
}

export interface Lock {
  /** What was asked for: name and range. */
  readonly asked: ReadonlyMap<string, string>;
  readonly packages: readonly LockedPackage[];
}

const MOST_PACKAGES = 5000;
const VERSION = /^\d+\.\d+\.\d+(?:-[\w.-]+)?(?:\+[\w.-]+)?$/;
const INTEGRITY = /^sha(?:512|384|256|1)-[A-Za-z0-9+/]+={0,2}$/;

const Shape = z.object({
  lockfileVersion: z.int().max(2),
  workspaces: z.strictObject({ '': z.object({ dependencies: z.record(z.string(), z.string()) }) }),
  packages: z.record(z.string(), z.tuple([z.string()]).rest(z.unknown())),
});

/** SECURITY: only what a registry gave, with a checksum; no addresses, repositories, folders or patches. */
const FromRegistry = z.tuple([
  z.string(),
  z.union([z.literal(''), z.url({ protocol: /^https?$/ })]),
  z.object(),
  z.string().regex(INTEGRITY),
]);

/** Reads `bun.lock`, which came out of a cell. Throws an Error that names the package at fault, if there is one. */
export function parseBunLock(text: string): Lock {
  const shape = Shape.safeParse(parseWithCommas(text));
  if (!shape.success) throw new Error('the lock file makes no sense');
  const { packages, workspaces } = shape.data;
  const lines = Object.entries(packages);
  if (lines.length > MOST_PACKAGES) throw new Error(`it is made of more than ${MOST_PACKAGES} packages`);
  return {
    asked: new Map(Object.entries(workspaces[''].dependencies)),
    packages: lines.map(([key, line]) => toPackage(key, line)),
  };
}

function toPackage(key: string, line: readonly unknown[]): LockedPackage {
  const names = toNames(key);
  const parsed = FromRegistry.safeParse(line);
  if (names === undefined || !parsed.success) {
    throw new Error(`${quoted(key)} does not come from the registry, or has no checksum there`);
  }
  const [id, url] = parsed.data;
  const at = id.lastIndexOf('@');
  const name = id.slice(0, Math.max(at, 0));
  const version = id.slice(at + 1);
  if (!isPackageName(name) || !VERSION.test(version) || !isRange(version)) {
    throw new Error(`${quoted(id)} is no package of a registry`);
  }
  return {
    name,
    version,
    url: url === '' ? undefined : url,
    path: names.map((part) => `node_modules/${part}`).join('/'),
    isTop: names.length === 1 && key === name,
  };
}

/** The names on the way to a package: `a/@b/c/d` is `d` in `@b/c` in `a`. */
function toNames(key: string): string[] | undefined {
  const names: string[] = [];
  let scope = '';
  for (const part of key.split('/')) {
    if (scope === '' && part.startsWith('@')) {
      scope = `${part}/`;
      continue;
    }
    names.push(scope + part);
    scope = '';
  }
  return scope === '' && names.every(isPackageName) ? names : undefined;
}

/** JSON in which a comma may stand before a closing bracket. */
function parseWithCommas(text: string): unknown {
  const json = text.replaceAll(
    /("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])/gs,
    (_whole, string?: string) => string ?? '',
  );
  return parseJson(json);
}
