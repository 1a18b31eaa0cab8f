import { HotcellError } from '../core/errors.ts';
import type { PackageSpec } from './api.ts';
import { quoted } from './package-spec.ts';

const NAME = /^[A-Za-z0-9](?:[\w.-]{0,98}[A-Za-z0-9])?$/;
const VERSION = String.raw`\d{1,10}(?:\.\d{1,10}){0,6}(?:(?:a|b|rc)\d{1,6})?(?:\.post\d{1,6})?(?:\.dev\d{1,6})?(?:\.\*)?`;
const CLAUSE = String.raw`(?:==|!=|<=|>=|<|>|~=) ?${VERSION}`;
const RANGE = new RegExp(String.raw`^(?:${VERSION}|${CLAUSE}(?: ?, ?${CLAUSE}){0,7})$`);

/** SECURITY: no name can be taken for an option, a path or an address. */
export function isPythonName(name: string): boolean {
  return NAME.test(name);
}

/** Names that the index takes for the same. */
export function normalName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, '-');
}

/** Throws PACKAGE_UNAVAILABLE for what is no name or no range. Gives it the name that all others have, too. */
export function checkPythonSpec({ name, range }: PackageSpec): PackageSpec {
  if (!isPythonName(name)) {
    throw new HotcellError('PACKAGE_UNAVAILABLE', `${quoted(name)} is no name of a package`, {
      hint: 'Write it as the index has it, such as requests; extras and addresses are not taken.',
    });
  }
  if (range !== undefined && !RANGE.test(range)) {
    throw new HotcellError('PACKAGE_UNAVAILABLE', `${name}: ${quoted(range)} is no version`, {
      hint: 'Write a version or clauses, such as 2.31.0 or >=2,<3.',
    });
  }
  return { name: normalName(name), range };
}

/** As pip wants it. */
export function toRequirement({ name, range }: PackageSpec): string {
  if (range === undefined) return name;
  return /^\d/.test(range) ? `${name}==${range}` : `${name}${range.replaceAll(' ', '')}`;
}
