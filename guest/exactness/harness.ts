import { execFileSync, spawn } from 'node:child_process';
import { createReadStream, createWriteStream, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { encodeJobFrame } from '../../src/pool/job-frame.ts';
import { toProgram, type Corpus, type Program } from './corpus/program.ts';

export interface Language {
  readonly extension: string;
  readonly bare: readonly string[];
  readonly hot: readonly string[];
  readonly hotEnv?: Readonly<Record<string, string>>;
}

export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

export const guest = dirname(import.meta.dirname);
const here = join(guest, 'bootstrap');
const node = process.execPath;
const bun = join(dirname(createRequire(import.meta.url).resolve('bun/package.json')), 'bin/bun.exe');

export const python: Language = {
  extension: 'py',
  bare: ['/usr/bin/python3', '-u'],
  hot: ['/usr/bin/python3', '-u'],
  hotEnv: { PYTHONPATH: join(here, 'python') },
};
const withoutSite = join(import.meta.dirname, 'without-site');
export const pythonWithoutSite: Language = {
  ...python,
  bare: ['env', `PYTHONPATH=${withoutSite}`, ...python.bare],
  hotEnv: { PYTHONPATH: `${join(here, 'python')}:${withoutSite}` },
};
export const ruby: Language = {
  extension: 'rb',
  bare: ['ruby'],
  hot: ['ruby', '-r', join(here, 'ruby.rb'), '-r', join(here, 'ruby.rb')],
};
export const javascript: Language = {
  extension: 'js',
  bare: [node],
  hot: [node, '-r', join(here, 'node.cjs')],
  hotEnv: { HOTCELL_BOOT: '1' },
};
export const typescript: Language = {
  extension: 'ts',
  bare: [bun],
  hot: [bun, '--no-install', '--preload', join(here, 'bun.ts')],
};
export const bash: Language = {
  extension: 'sh',
  bare: ['bash'],
  hot: ['bash'],
  hotEnv: { BASH_ENV: join(here, 'bash.sh') },
};

const root = mkdtempSync(join(tmpdir(), 'hotcell-exactness-'));
export const folder = join(root, 'cell');
const pipes = { in: join(root, 'in'), out: join(root, 'out'), err: join(root, 'err') };
execFileSync('mkfifo', Object.values(pipes));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const baseEnv = {
  PYTHONDONTWRITEBYTECODE: '1',
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: root,
  LANG: 'C.UTF-8',
};

function ended(stream: NodeJS.EventEmitter): Promise<void> {
  return new Promise((resolve) => {
    stream.once('end', () => resolve());
  });
}

/** Runs one command on FIFOs, as a cell does. With a frame it waits for the ready byte first, and removes it. */
export async function run(
  command: readonly string[],
  env: Record<string, string>,
  input: Uint8Array,
  isHot: boolean,
): Promise<Outcome> {
  // The variables go through env because sh drops those with a name that it cannot use itself.
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const wired = [
    '-c',
    `exec env "$@" <${pipes.in} >${pipes.out} 2>${pipes.err}`,
    'sh',
    ...variables,
    ...command,
  ];
  const child = spawn('/bin/sh', wired, { cwd: folder, env: baseEnv, stdio: 'ignore' });
  const stdin = createWriteStream(pipes.in);
  // A program may end without reading its input.
  stdin.on('error', () => {});
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  const output = createReadStream(pipes.out);
  if (!isHot) stdin.end(input);
  output.on('data', (chunk) => {
    if (isHot && stdout.length === 0) stdin.end(input);
    stdout.push(Buffer.from(chunk));
  });
  const errors = createReadStream(pipes.err);
  errors.on('data', (chunk) => stderr.push(Buffer.from(chunk)));
  const exited = new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.once('exit', (status, signal) => resolve([status, signal]));
  });
  const [[status, signal]] = await Promise.all([exited, ended(output), ended(errors)]);
  stdin.destroy();
  const whole = Buffer.concat(stdout).toString('latin1');
  if (isHot && whole[0] !== '\x06') throw new Error(`no ready byte but ${JSON.stringify(whole)}`);
  return {
    stdout: isHot ? whole.slice(1) : whole,
    stderr: Buffer.concat(stderr).toString('latin1'),
    status,
    signal,
  };
}

export function freshFolder(files: Readonly<Record<string, string | Uint8Array>>): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
}

export function frameOf(program: Program): Uint8Array {
  return encodeJobFrame({
    code: program.code,
    args: [...(program.args ?? [])],
    env: { ...program.env },
    files: Object.entries(program.files ?? {}).map(([path, content]) => ({
      path,
      content: Buffer.from(content),
    })),
  });
}

function runBare(language: Language, program: Program): Promise<Outcome> {
  const file = join(folder, `exec_test.${language.extension}`);
  freshFolder({ [`exec_test.${language.extension}`]: program.code, ...program.files });
  return run(
    [...language.bare, file, ...(program.args ?? [])],
    { ...program.env },
    Buffer.from(program.stdin ?? ''),
    false,
  );
}

export function runHot(language: Language, program: Program, input?: Uint8Array): Promise<Outcome> {
  const file = join(folder, `exec_test.${language.extension}`);
  freshFolder({ [`exec_test.${language.extension}`]: '\n' });
  const frame = input ?? Buffer.concat([frameOf(program), Buffer.from(program.stdin ?? '')]);
  return run([...language.hot, file], { ...language.hotEnv }, frame, true);
}

/** Runs every program bare and hot, in the same place, and expects the same outcome. */
export function exact(name: string, language: Language, corpus: Corpus): void {
  describe(`${name} goes on as if started on the file`, () => {
    test.for(Object.entries(corpus))('%s', { timeout: 30_000 }, async ([, entry]) => {
      const program = toProgram(entry);
      const bare = await runBare(language, program);
      expect(await runHot(language, program)).toEqual(bare);
    });
  });
}
