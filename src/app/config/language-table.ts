import { BUILT_IN_LANGUAGES, type Language, type LanguageTable } from '../../core/language.ts';
import type { Config } from './config.ts';

/** The built-in languages with the operator's additions, replacements and removals. */
export function toLanguageTable(configured: Config['languages']): LanguageTable {
  const entries = Object.entries({ ...BUILT_IN_LANGUAGES, ...configured });
  const kept = entries.filter((entry): entry is [string, Language] => entry[1] !== false);
  return Object.fromEntries(kept);
}
