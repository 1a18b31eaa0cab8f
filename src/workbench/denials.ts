import { Denial } from '../wire/permissions.ts';
import { parseJson } from '../lib/parse-json.ts';

const PREFIX = 'hotcell-denied: ';
const MOST_DENIALS = 20;
const LONGEST_LINE = 8 * 1024;

export interface ReadDenials {
  readonly denials: readonly Denial[];
  /** Without the lines that became denials. */
  readonly stderr: string;
}

/**
 * What the hooks said was refused. SECURITY: everything on stderr may have been written by the code itself, so this is what
 * it would like to have, and nothing to act upon. A line that is not exactly a denial stays what it is: text.
 */
export function readDenials(stderr: string): ReadDenials {
  const denials = new Map<string, Denial>();
  const kept = stderr.split('\n').filter((line) => {
    const denial = parseLine(line);
    if (denial === undefined) return true;
    const key = JSON.stringify(denial);
    if (denials.size >= MOST_DENIALS && !denials.has(key)) return true;
    denials.set(key, denial);
    return false;
  });
  return { denials: [...denials.values()], stderr: kept.join('\n') };
}

function parseLine(line: string): Denial | undefined {
  if (!line.startsWith(PREFIX) || line.length > LONGEST_LINE) return undefined;
  return Denial.safeParse(parseJson(line.slice(PREFIX.length))).data;
}
