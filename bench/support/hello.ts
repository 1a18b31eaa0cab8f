import { BUILT_IN_LANGUAGES } from '../../src/core/language.ts';

export const LANGUAGES = ['python', 'ruby', 'javascript', 'typescript', 'bash'] as const;
export type LanguageName = (typeof LANGUAGES)[number];

export function isLanguage(name: string): name is LanguageName {
  return (LANGUAGES as readonly string[]).includes(name);
}

export const ANSWER = 'hello\n';

const CODE: Readonly<Record<LanguageName, string>> = {
  python: 'print("hello")\n',
  ruby: 'puts "hello"\n',
  javascript: 'console.log("hello");\n',
  typescript: 'const word: string = "hello";\nconsole.log(word);\n',
  bash: 'echo hello\n',
};

export function helloIn(language: LanguageName): string {
  return CODE[language];
}

export function fileNameOf(language: LanguageName): string {
  return `hello.${BUILT_IN_LANGUAGES[language]?.extension ?? language}`;
}

/** The very command that Hotcell runs in a cold cell, so that every way starts the same thing. */
export function commandFor(language: LanguageName, filepath: string): [string, ...string[]] {
  const words = BUILT_IN_LANGUAGES[language]?.command ?? [];
  const [program, ...rest] = words.map((word) => word.replaceAll('{filepath}', () => filepath));
  if (program === undefined) throw new RangeError(`${language} has no command`);
  return [program, ...rest];
}

/** A shell command that writes a hello program to a path, for places that are reached only by running something. */
export function commandThatWrites(language: LanguageName, filepath: string): [string, ...string[]] {
  return ['sh', '-c', 'printf %s "$1" >"$2"', 'sh', helloIn(language), filepath];
}

/** A figure for a wrong answer would be worse than none. */
export function requireHello(where: string, answer: { stdout: string; code: number | null }): void {
  if (answer.stdout === ANSWER && answer.code === 0) return;
  throw new Error(
    `${where}: exit ${answer.code}, stdout ${JSON.stringify(answer.stdout.slice(0, 300))} instead of hello`,
  );
}
