import { HotcellError } from '../core/errors.ts';
import { toSizeText } from '../lib/size-text.ts';
import type { FailedInstall } from './ecosystem.ts';
import { isPackageName } from './package-spec.ts';

/** How bun names a package that it could not get. */
const FAILED_NAMES: readonly RegExp[] = [
  /^error: (\S+)@.* failed to resolve$/,
  /^error: .*(?:tarball|package manifest)(?: from| for)?:? (\S+?)(?:@[^/]*)?$/,
];
const MOST_NAMES = 5;
const SMALLER = 'Use a smaller package, or have the operator raise the limits of installations.';
const LONGEST_REASON = 300;

/** Names the package, and says why there is none. */
export function explainNpm(failed: FailedInstall): HotcellError {
  const { request, words } = failed;
  const lines = toLines(words);
  const names = namesIn(lines);
  const shown = names.length === 0 ? request.specs.map(({ name }) => name) : names;
  const { reason, hint } = explain(failed, lines);
  const extras = hint === undefined ? {} : { hint };
  const list = shown.slice(0, MOST_NAMES).join(', ') + (shown.length > MOST_NAMES ? ', …' : '');
  return new HotcellError('PACKAGE_UNAVAILABLE', `${list} cannot be installed: ${reason}`, extras);
}

interface Reason {
  readonly reason: string;
  readonly hint?: string;
}

function explain(
  { request, refusals, isTooLarge, diskBytes }: FailedInstall,
  lines: readonly string[],
): Reason {
  const all = lines.join('\n');
  const [refusal] = refusals;
  if (refusal !== undefined) {
    return {
      reason: `the gate refuses ${refusal.host}: ${refusal.reason}`,
      hint: 'Packages come from the registry that npm is configured for on the server, and from nowhere else.',
    };
  }
  if (isTooLarge || /NoSpaceLeft|ENOSPC|no space left/i.test(all)) {
    return { reason: 'it is too large', hint: SMALLER };
  }
  if (/extracting tarball/i.test(all)) {
    // bun does not say which, and has removed the traces.
    const reason = `its tarball is broken, or larger than the ${toSizeText(diskBytes)} of the cell`;
    return { reason, hint: SMALLER };
  }
  if (/blocked by minimum-release-age/.test(all)) {
    return {
      reason: `no version that fits is older than ${toAge(request.minimumReleaseAgeSeconds)}`,
      hint: 'Use an older version; the operator decides how old versions must be.',
    };
  }
  const [, wanted] =
    /No version matching "([^"]*)" found/.exec(all) ?? /with tag "([^"]*)" not found/.exec(all) ?? [];
  if (wanted !== undefined) return { reason: `there is no version ${wanted}` };
  if (/ - 404$/m.test(all)) return { reason: 'the registry has no such package' };
  if (/Connection|Timeout|Socket|Unreachable|DNS|CERT|getaddrinfo| - 5\d\d$/im.test(all)) {
    return {
      reason: `the registry cannot be reached (${lastError(lines)})`,
      hint: 'Try again later, or have the operator look at the network of the server.',
    };
  }
  return { reason: lastError(lines) };
}

function namesIn(lines: readonly string[]): string[] {
  const names = lines.flatMap((line) => {
    const [, name] = FAILED_NAMES.map((form) => form.exec(line)).find((match) => match !== null) ?? [];
    return name === undefined || !isPackageName(name) ? [] : [name];
  });
  return [...new Set(names)];
}

function toLines(words: string): string[] {
  return words
    .split('\n')
    .map((line) => line.replaceAll(/\p{Cc}|\p{Cf}/gu, '').trim())
    .filter((line) => line !== '');
}

function lastError(lines: readonly string[]): string {
  const line = lines.find((one) => one.startsWith('error:')) ?? lines.at(-1) ?? 'bun gave no reason';
  return line.replace(/^error: /, '').slice(0, LONGEST_REASON);
}

function toAge(seconds: number): string {
  const days = seconds / 86_400;
  return days >= 1 ? `${Math.round(days)} days` : `${seconds} seconds`;
}
