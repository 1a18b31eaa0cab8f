import { parseArgs } from 'node:util';
import { isLanguage, LANGUAGES, type LanguageName } from './support/hello.ts';

export interface Options {
  readonly json: boolean;
  readonly languages: readonly LanguageName[];
  /** Samples of each way and language. */
  readonly rounds: number;
  /** How long each way is kept busy at each concurrency. */
  readonly seconds: number;
  /** A running container to use for docker exec instead of one of our own. */
  readonly dockerContainer: string | undefined;
  readonly startDocker: boolean;
}

export const USAGE = `Usage: scripts/bench.sh [OPTION…]        (npm run bench -- [OPTION…])

  --json                    one JSON object on stdout instead of tables
  --languages a,b           of ${LANGUAGES.join(', ')} (default: all)
  --rounds N                samples of each way and language (default: 40)
  --seconds N               load on each way at each concurrency (default: 5)
  --start-docker            start a private dockerd and stop it at the end (needs root)
  --docker-container NAME   use this running container for docker exec
`;

export class UsageError extends Error {}

export function readOptions(args: readonly string[]): Options | 'help' {
  const values = parse(args);
  if (values.help === true) return 'help';
  return {
    json: values.json ?? false,
    languages: values.languages === undefined ? LANGUAGES : readLanguages(values.languages),
    rounds: readNumber('--rounds', values.rounds, { least: 1, otherwise: 40 }),
    seconds: readNumber('--seconds', values.seconds, { least: 0.5, otherwise: 5 }),
    dockerContainer: values['docker-container'],
    startDocker: values['start-docker'] ?? false,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        json: { type: 'boolean' },
        languages: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        'docker-container': { type: 'string' },
        'start-docker': { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readLanguages(text: string): LanguageName[] {
  return text.split(',').map((name) => {
    if (isLanguage(name)) return name;
    throw new UsageError(`--languages: no language is called ${name}`);
  });
}

function readNumber(
  flag: string,
  text: string | undefined,
  { least, otherwise }: { least: number; otherwise: number },
): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isFinite(value) || value < least) throw new UsageError(`${flag}: at least ${least}`);
  return value;
}
