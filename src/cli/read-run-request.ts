import { readFile } from 'node:fs/promises';
import { basename, extname, isAbsolute, normalize } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { HotcellError, messageOf } from '../core/errors.ts';
import { relativePathProblem, type JobFile } from '../core/job.ts';
import type { LanguageTable } from '../core/language.ts';
import type { RunRequest } from '../runs/run.ts';
import { ExecuteRequest } from '../wire/execute.ts';
import type { RunOptions } from './commands/run.ts';
import { usageError } from './exit-codes.ts';

const Program = ExecuteRequest.pick({ code: true, args: true, env: true });

/** Reads everything that a command line names into one request. */
export async function readRunRequest(
  file: string,
  args: readonly string[],
  options: RunOptions,
  languages: LanguageTable,
): Promise<RunRequest> {
  if (file === '-' && options.stdin === '-') {
    throw usageError('stdin cannot be both the code and the input', 'Put one of them into a file.');
  }
  const language = options.language ?? languageOf(file, languages);
  if (!Object.hasOwn(languages, language)) {
    throw new HotcellError('LANGUAGE_UNKNOWN', `there is no language ${language}`, {
      hint: `Use one of ${Object.keys(languages).join(', ')}.`,
    });
  }
  const program = Program.safeParse({ code: toText(file, await read(file)), args, env: options.env ?? {} });
  if (!program.success) {
    const [issue] = program.error.issues;
    const reason = issue?.code === 'invalid_key' ? issue.issues[0]?.message : issue?.message;
    throw usageError(
      `${issue?.path.join('.') ?? ''}: ${reason ?? 'is not valid'}`,
      'See hotcell run --help.',
    );
  }
  return {
    ...program.data,
    language,
    files: await readExtraFiles(options.file ?? []),
    stdin: options.stdin === undefined ? new Uint8Array() : await read(options.stdin),
  };
}

function languageOf(file: string, languages: LanguageTable): string {
  const extension = extname(file).slice(1);
  const found = Object.entries(languages).find(([, language]) => language.extension === extension);
  if (found !== undefined) return found[0];
  const from = file === '-' ? 'stdin has no extension' : `no language has the extension of ${file}`;
  throw usageError(
    `${from}, so the language is not known`,
    `Add --language ${Object.keys(languages).join('|')}.`,
  );
}

async function read(path: string): Promise<Uint8Array> {
  try {
    return path === '-' ? await buffer(process.stdin) : await readFile(path);
  } catch (error) {
    throw usageError(
      `cannot read ${path}: ${messageOf(error)}`,
      'Name files that exist and that you may read.',
    );
  }
}

function toText(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw usageError(`${file} is not UTF-8 text`, 'Code must be UTF-8; other files go with --file.');
  }
}

async function readExtraFiles(paths: readonly string[]): Promise<JobFile[]> {
  const files = new Map<string, JobFile>();
  for (const from of paths) {
    const path = toPathInCell(from);
    if (files.has(path)) throw usageError(`two files would be ${path} in the cell`, 'Rename one of them.');
    files.set(path, { path, content: await read(from) });
  }
  return [...files.values()];
}

/** The same relative path; a file from elsewhere keeps its name only. */
function toPathInCell(from: string): string {
  const tidy = normalize(from);
  const isBelow = !isAbsolute(tidy) && tidy.split('/')[0] !== '..';
  const path = isBelow ? tidy : basename(tidy);
  const problem = relativePathProblem(path);
  if (problem !== undefined) throw usageError(`--file ${from}: the path ${problem}`, 'Name a plain file.');
  return path;
}
