import { HotcellError } from '../core/errors.ts';
import type { PackageSpec } from './api.ts';

const LONGEST_NAME = 214;
const LONGEST_RANGE = 100;
const LONGEST_SHOWN = 80;

/**
 * npm's rules, with the capitals of its early days. SECURITY: no name can climb out of a folder, or be taken for an
 * option or for the prototype of an object.
 */
const NAME = /^(?:@[A-Za-z0-9][\w.~-]*\/)?[A-Za-z0-9][\w.~-]*$/;
const RESERVED: ReadonlySet<string> = new Set(['node_modules', 'favicon.ico']);

const NUMBER = String.raw`(?:0|[1-9]\d{0,15}|[xX*])`;
const SUFFIX = String.raw`(?:-[\w.-]+)?(?:\+[\w.-]+)?`;
const VERSION = String.raw`v?${NUMBER}(?:\.${NUMBER}(?:\.${NUMBER}${SUFFIX})?)?`;
const COMPARATOR = String.raw`(?:\^|~|[<>]=?|=)? ?${VERSION}`;
const PART = String.raw`(?:${VERSION} - ${VERSION}|${COMPARATOR}(?: ${COMPARATOR}){0,7})`;
const RANGE = new RegExp(String.raw`^${PART}(?: ?\|\| ?${PART}){0,7}$`);
const TAG = /^[A-Za-z][\w.-]{0,63}$/;

export function isPackageName(name: string): boolean {
  return name.length <= LONGEST_NAME && NAME.test(name) && !RESERVED.has(name.toLowerCase());
}

/** A range of versions or a tag such as `next`: nothing that leads elsewhere than to the registry. */
export function isRange(range: string): boolean {
  return range.length <= LONGEST_RANGE && (RANGE.test(range) || TAG.test(range));
}

/** `zod`, `zod@3`, `@scope/name@^1.2`, each also with `npm:` before it. Throws PACKAGE_UNAVAILABLE. */
export function parsePackageSpec(text: string): PackageSpec {
  const whole = text.startsWith('npm:') ? text.slice('npm:'.length) : text;
  const at = whole.indexOf('@', 1);
  const name = at === -1 ? whole : whole.slice(0, at);
  return checkSpec({ name, range: at === -1 ? undefined : whole.slice(at + 1) });
}

/** Throws PACKAGE_UNAVAILABLE for what is no name or no range. */
export function checkSpec(spec: PackageSpec): PackageSpec {
  const { name, range } = spec;
  if (!isPackageName(name)) {
    throw new HotcellError('PACKAGE_UNAVAILABLE', `${quoted(name)} is no name of a package`, {
      hint: 'Write it as the registry has it, such as zod or @scope/name.',
    });
  }
  if (range !== undefined && !isRange(range)) {
    throw new HotcellError('PACKAGE_UNAVAILABLE', `${name}: ${quoted(range)} is no version`, {
      hint: 'Write a version, a range or a tag, such as 3.22.4, ^3 or next; addresses and aliases are not taken.',
    });
  }
  return spec;
}

/** Packages that are wanted together, each once. */
export class SpecTable {
  readonly #ranges = new Map<string, string | undefined>();

  /** Throws PACKAGE_UNAVAILABLE when another version of the same package is wanted already. */
  add({ name, range }: PackageSpec): void {
    const before = this.#ranges.get(name);
    if (before !== undefined && range !== undefined && before !== range) {
      throw new HotcellError(
        'PACKAGE_UNAVAILABLE',
        `${name} is asked for in two versions: ${before} and ${range}`,
        { hint: 'Use one version of a package in a run.' },
      );
    }
    this.#ranges.set(name, before ?? range);
  }

  /** By name. */
  list(): PackageSpec[] {
    return [...this.#ranges]
      .map(([name, range]) => ({ name, range }))
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }
}

/** Packages that several parts of a run want, each once. Throws PACKAGE_UNAVAILABLE when they want different versions. */
export function mergeSpecs(specs: readonly PackageSpec[], check = checkSpec): PackageSpec[] {
  const table = new SpecTable();
  for (const spec of specs) table.add(check(spec));
  return table.list();
}

/** What somebody wrote, for a message: short, and without what a terminal would obey. */
export function quoted(text: string): string {
  const shown = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
  return JSON.stringify(shown).replaceAll(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?');
}
