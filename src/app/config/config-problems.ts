import type * as z from 'zod';
import { Language } from '../../core/language.ts';
import { SETTINGS, valueAt, type Origin } from './config-keys.ts';
import { didYouMean } from './nearest-name.ts';

type Issue = z.core.$ZodIssue;
type FindGiven = (path: string) => { readonly value: unknown; readonly origin: Origin } | undefined;

/** What the schema refused, in words that name the source and the value. */
export function describeIssues(issues: readonly Issue[], find: FindGiven): string[] {
  return issues.flatMap((issue) => describe(issue, issue.path, find));
}

function describe(issue: Issue, path: readonly PropertyKey[], find: FindGiven): string[] {
  const setting = settingOf(path);
  const given = setting === undefined ? undefined : find(setting);
  const value = valueAt(given?.value, path.slice(setting?.split('.').length ?? 0));
  if (issue.code === 'invalid_union') {
    // The first alternative is the full form; the others are single words such as `false`.
    const inner = issue.errors[0] ?? [];
    return typeof value === 'object' && value !== null
      ? inner.flatMap((error) => describe(error, [...path, ...error.path], find))
      : [`${place(path, given?.origin)}: must be a language or false, not ${shown(value)}`];
  }
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map(
      (key) =>
        `${place([...path, key], given?.origin)}: unknown key${didYouMean(key, Object.keys(Language.shape))}`,
    );
  }
  if (issue.code === 'invalid_key') {
    return [`${place(path, given?.origin)}: the name must be ${issue.issues[0]?.message ?? 'another'}`];
  }
  const secret = setting !== undefined && SETTINGS.get(setting)?.secret === true;
  const reason = issue.message.replace(/^(Invalid|Too) \w+: /, '');
  return [`${place(path, given?.origin)}: ${reason}${secret ? '' : `, not ${shown(value)}`}`];
}

/** The key path of the setting that an issue lies in: `weaker` for `weaker[0]`. */
function settingOf(path: readonly PropertyKey[]): string | undefined {
  return [path.slice(0, 1), path.slice(0, 2)]
    .map((parts) => parts.join('.'))
    .find((key) => SETTINGS.has(key));
}

function place(path: readonly PropertyKey[], origin: Origin | undefined): string {
  const key = path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
  const namesKey = origin?.startsWith('file ') !== true && settingOf(path) === key;
  return namesKey && origin !== undefined ? origin : `${origin ?? 'settings'}: ${key}`;
}

/** A value as it may stand in a message: one line, not long. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
