import * as z from 'zod';
import type { CellImage } from './cell.ts';

/** How to run one language. Operators add entries by configuration alone. */
export const Language = z.strictObject({
  extension: z
    .string()
    .regex(/^\.?[A-Za-z0-9]{1,16}$/)
    .transform((text) => text.replace(/^\./, ''))
    .describe('extension of the code file, with or without the dot'),
  command: z
    .array(z.string().min(1))
    .min(1)
    .refine((words) => words.some((word) => word.includes('{filepath}')), 'must contain {filepath}')
    .describe('argv that runs the file; {filepath} stands for it'),
  image: z.string().min(1).optional().describe('container image, for drivers that use images'),
  recipe: z
    .string()
    .min(1)
    .optional()
    .describe('folder below images/: what `hotcell build` made of it is preferred to the image'),
  hot: z
    .strictObject({
      command: z.array(z.string().min(1)).min(1),
      env: z.record(z.string(), z.string()).default({}),
      boots: z
        .boolean()
        .default(true)
        .describe('false: walls that wait are enough, since the interpreter is there at once'),
      forks: z
        .boolean()
        .default(false)
        .describe(
          'true: once booted, the interpreter can fork copies of itself that wait (see guest/README.md)',
        ),
    })
    .optional()
    .describe('argv of an interpreter that boots first and waits for the code (see guest/README.md)'),
  package: z.string().min(1).optional().describe('Debian package that brings the interpreter'),
});
export type Language = z.infer<typeof Language>;
export type LanguageTable = Readonly<Record<string, Language>>;

export const LanguageName = z
  .string()
  .regex(/^[a-z][a-z0-9_+-]{0,31}$/, 'a lower-case word of at most 32 letters, digits, _, + or -');

/** The languages that come with Hotcell. */
export const BUILT_IN_LANGUAGES: LanguageTable = {
  python: {
    extension: 'py',
    image: 'python:3.10-slim',
    recipe: 'python',
    command: ['python3', '-u', '{filepath}'],
    hot: {
      command: ['python3', '-u', '{filepath}'],
      env: { PYTHONPATH: '{guest}/bootstrap/python' },
      boots: true,
      forks: true,
    },
    package: 'python3',
  },
  ruby: {
    extension: 'rb',
    image: 'ruby:3.2-slim',
    recipe: 'ruby',
    command: ['ruby', '{filepath}'],
    // Twice: the first makes the second one wait for the job (see the bootstrap).
    hot: {
      command: ['ruby', '-r', '{guest}/bootstrap/ruby.rb', '-r', '{guest}/bootstrap/ruby.rb', '{filepath}'],
      env: {},
      boots: true,
      forks: true,
    },
    package: 'ruby',
  },
  javascript: {
    extension: 'js',
    image: 'node:24-slim',
    recipe: 'node',
    command: ['node', '{filepath}'],
    hot: {
      command: ['node', '-r', '{guest}/bootstrap/node.cjs', '{filepath}'],
      env: { HOTCELL_BOOT: '1' },
      boots: true,
      forks: false,
    },
  },
  typescript: {
    extension: 'ts',
    image: 'oven/bun:1-slim',
    recipe: 'bun',
    command: ['bun', '--no-install', '{filepath}'],
    hot: {
      command: ['bun', '--no-install', '--preload', '{guest}/bootstrap/bun.ts', '{filepath}'],
      env: {},
      boots: true,
      forks: false,
    },
  },
  bash: {
    extension: 'sh',
    image: 'debian:12-slim',
    recipe: 'shell',
    command: ['bash', '{filepath}'],
    hot: {
      command: ['bash', '{filepath}'],
      env: { BASH_ENV: '{guest}/bootstrap/bash.sh' },
      boots: false,
      forks: false,
    },
    package: 'bash',
  },
};

/** The argv and environment that start a language's interpreter so that it waits for a job. */
export function toHotCommand(
  language: Language,
  filepath: string,
): { argv: [string, ...string[]]; env: Record<string, string> } {
  const fill = (words: readonly string[]): string[] =>
    words.map((word) => word.replaceAll('{filepath}', () => filepath));
  const [program, ...rest] =
    language.hot === undefined
      ? ['bash', '{guest}/bootstrap/command.sh', filepath, ...fill(language.command)]
      : fill(language.hot.command);
  if (program === undefined) throw new RangeError('a language needs a command');
  return { argv: [program, ...rest], env: { ...language.hot?.env } };
}

/** The argv that runs a language's file, once that is there. */
export function toCommand({ command }: Language, filepath: string): [string, ...string[]] {
  const [program, ...rest] = command.map((word) => word.replaceAll('{filepath}', () => filepath));
  if (program === undefined) throw new RangeError('a language needs a command');
  return [program, ...rest];
}

export function imageOf(language: Language): CellImage {
  return { name: language.image, recipe: language.recipe };
}
