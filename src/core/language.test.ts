import { describe, expect, test } from 'vitest';
import { BUILT_IN_LANGUAGES, Language, LanguageName, toHotCommand } from './language.ts';

const LUA = Language.parse({ extension: 'lua', command: ['lua', '{filepath}'] });

describe('the schema', () => {
  test.each(Object.entries(BUILT_IN_LANGUAGES))('[CX-02] the built-in %s satisfies it', (name, language) => {
    expect(LanguageName.parse(name)).toBe(name);
    expect(Language.parse(language)).toEqual(language);
  });

  test.each(['lua', '.lua'])('[CX-02] extension %s stands without the dot', (extension) => {
    expect(Language.parse({ ...LUA, extension }).extension).toBe('lua');
  });

  test.each([
    ['a command without {filepath}', { command: ['lua', 'filepath'] }],
    ['no command', { command: [] }],
    ['an empty word', { command: ['lua', '', '{filepath}'] }],
    ['a command line instead of a list', { command: 'lua {filepath}' }],
    ['a path as extension', { extension: '../lua' }],
    ['an unknown key', { comand: ['lua'] }],
    ['an empty boot command', { hot: { command: [] } }],
  ])('[CX-02] refused: %s', (_what, changes) => {
    expect(Language.safeParse({ ...LUA, ...changes }).success).toBe(false);
  });

  test.each(['Lua', '../x', '', '1a', 'a'.repeat(33), 'a/b'])('[CX-02] %j is no name', (name) => {
    expect(LanguageName.safeParse(name).success).toBe(false);
  });
});

describe('the command of a hot cell', () => {
  test('[CX-02] a language with nothing but a command is started by the general bootstrap', () => {
    expect(toHotCommand(LUA, '/tmp/x.lua')).toEqual({
      argv: ['bash', '{guest}/bootstrap/command.sh', '/tmp/x.lua', 'lua', '/tmp/x.lua'],
      env: {},
    });
  });

  test('[CX-02] a language with an interpreter that waits is started with that', () => {
    const hot = {
      command: ['lua', '-l', '{guest}/wait.lua', '{filepath}'],
      env: { LUA_INIT: 'x' },
      boots: true,
      forks: false,
    };
    expect(toHotCommand({ ...LUA, hot }, '/tmp/x.lua')).toEqual({
      argv: ['lua', '-l', '{guest}/wait.lua', '/tmp/x.lua'],
      env: { LUA_INIT: 'x' },
    });
  });

  test('the path stands wherever it is named, also within a word', () => {
    const command: [string, ...string[]] = ['run', '--main={filepath}', '{filepath}:{filepath}'];
    expect(toHotCommand({ ...LUA, command }, '/f').argv.slice(3)).toEqual(['run', '--main=/f', '/f:/f']);
  });

  test.each(['$&', "$'", '$`', '$1', '$$'])('a path with %s is put in as it is', (pattern) => {
    expect(toHotCommand(LUA, `/tmp/${pattern}`).argv.at(-1)).toBe(`/tmp/${pattern}`);
  });

  test('[SC-03] the environment of the table is not shared with its callers', () => {
    const python = BUILT_IN_LANGUAGES['python'];
    if (python === undefined) throw new RangeError('no python');
    toHotCommand(python, '/f').env['PYTHONPATH'] = '/evil';
    expect(python.hot?.env['PYTHONPATH']).toBe('{guest}/bootstrap/python');
  });
});
