import type { ServeHooks } from '../../app/serve.ts';
import type { Note } from '../../core/driver.ts';
import type { LanguageStatus } from '../../runs/run.ts';
import type { Terminal } from '../terminal.ts';

type ReadyInfo = Parameters<ServeHooks['onReady']>[0];

/** A first program in each language that comes with Hotcell; none holds a quote of the shell. */
const SAMPLES: ReadonlyMap<string, string> = new Map([
  ['python', 'print(6 * 7)'],
  ['ruby', 'puts 6 * 7'],
  ['javascript', 'console.log(6 * 7)'],
  ['typescript', 'console.log(6 * 7)'],
  ['bash', 'echo $((6 * 7))'],
]);

/** What a person wants to know when the server is up: where, how to try it, what protects. */
export function renderReady(
  info: ReadyInfo,
  options: { needsKey: boolean; paint: Terminal['paint'] },
): string {
  const { paint } = options;
  const usable = info.languages.filter((language) => language.available);
  const lines = [
    `${paint.green('●')} ${paint.bold(`Hotcell is ready on ${info.url}`)}`,
    `  protects   ${info.driver} driver (${info.reason}), ${info.runtime}`,
    `  cells      ${info.strategy === 'fresh' ? 'fresh: one for every run' : 'shared: one per language'}`,
    `  languages  ${usable.map((language) => language.name).join(', ') || 'none'}`,
    `  docs       ${info.url}/docs`,
  ];
  for (const language of info.languages.filter((candidate) => !candidate.available)) {
    lines.push(`  ${paint.yellow('!')} no ${language.name}: ${language.problem ?? 'not available'}`);
  }
  lines.push(...renderNotes(info.notes, paint));
  const example = toExample(info.url, usable, options.needsKey);
  if (example !== undefined) lines.push('', 'Try it:', `  ${example}`);
  return lines.join('\n');
}

export function renderNotes(notes: readonly Note[], paint: Terminal['paint']): string[] {
  return notes.flatMap((note) => [
    `  ${paint.yellow('!')} ${note.text}`,
    ...(note.remedy === undefined ? [] : [`    → ${note.remedy}`]),
  ]);
}

export function toReadyJson(info: ReadyInfo): Record<string, unknown> {
  return {
    url: info.url,
    driver: info.driver,
    reason: info.reason,
    strategy: info.strategy,
    runtime: info.runtime,
    languages: info.languages.filter((language) => language.available).map((language) => language.name),
    notes: info.notes,
  };
}

function toExample(url: string, usable: readonly LanguageStatus[], needsKey: boolean): string | undefined {
  const name = [...SAMPLES.keys()].find((candidate) =>
    usable.some((language) => language.name === candidate),
  );
  if (name === undefined) return undefined;
  const key = needsKey ? ` -H "authorization: Bearer $HOTCELL_API_KEY"` : '';
  const body = JSON.stringify({ code: SAMPLES.get(name) });
  return `curl -s ${url}/execute/${name}${key} -H 'content-type: application/json' -d '${body}'`;
}
