import type { Program } from './corpus/program.ts';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  type Outcome,
  bash,
  folder,
  frameOf,
  freshFolder,
  guest,
  javascript,
  python,
  ruby,
  run,
  runHot,
  typescript,
} from './harness.ts';

const wait = (words: string[], program: Program): Promise<Outcome> => {
  const file = join(folder, 'exec_test.txt');
  freshFolder({ 'exec_test.txt': '\n' });
  return run(
    ['bash', join(guest, 'bootstrap/command.sh'), file, ...words, file],
    {},
    Buffer.concat([frameOf(program), Buffer.from(program.stdin ?? '')]),
    true,
  );
};

const text = (value: string): string => `${Buffer.byteLength(value)}\n${value}`;

describe('command.sh', () => {
  test('executes the command with the arguments and leaves stdin alone', async () => {
    const outcome = await wait(['cat'], {
      code: 'a\n$(b)',
      args: ['-', 'extra'],
      files: { extra: Uint8Array.of(0, 1) },
      stdin: 'input',
    });
    expect(outcome).toEqual({ stdout: 'a\n$(b)input\0\x01', stderr: '', status: 0, signal: null });
  });

  test('gives the command the environment that it would have without us', async () => {
    const program: Program = { code: 'env | sort', env: { FOO: 'a b', 'a-b': '$(id)', LC_ALL: 'C' } };
    const file = join(folder, 'exec_test.txt');
    freshFolder({ 'exec_test.txt': program.code });
    const bare = await run(['dash', file], { ...program.env }, Buffer.of(), false);
    expect(await wait(['dash'], program)).toEqual(bare);
  });
});

describe('the frame', () => {
  const languages = Object.entries({ python, ruby, node: javascript, bun: typescript, bash });
  const quiet = { stdout: '', stderr: '', status: 0, signal: null };

  test.for(languages)('%s ends quietly when no job comes', async ([, language]) => {
    expect(await runHot(language, { code: '' }, Buffer.of())).toEqual(quiet);
  });

  test.for(languages)('%s refuses a broken frame', async ([, language]) => {
    const frames = [
      'x',
      '5',
      '5\nab',
      `${text('')}${text('x')}`,
      `${text('')}${text('0')}${text('0')}${text('1')}${text('f')}9\nabc`,
    ];
    for (const frame of frames) {
      const outcome = await runHot(language, { code: '' }, Buffer.from(frame));
      expect(outcome).toMatchObject({ stdout: '', status: 70 });
      expect(outcome.stderr).toMatch(/^hotcell: [^\n]+\n$/);
    }
  });

  test.for(languages)('%s takes a backslash in the name of a file for a letter', async ([, language]) => {
    const name = 'a\\..\\b\\n';
    expect(await runHot(language, { code: '', files: { [`deep/${name}`]: 'x' } })).toEqual(quiet);
    expect(readdirSync(join(folder, 'deep'))).toEqual([name]);
  });

  test.for(languages)('%s refuses files outside the folder', async ([, language]) => {
    for (const path of ['/tmp/hotcell-escaped', '../hotcell-escaped', 'a/../../hotcell-escaped', '']) {
      expect(await runHot(language, { code: '', files: { [path]: 'x' } })).toMatchObject({
        stdout: '',
        status: 70,
      });
    }
  });
});
