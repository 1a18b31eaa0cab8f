import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import { SETTINGS, toEnvironmentName } from './config-keys.ts';
import { readConfig, type ConfigInput } from './read-config.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-config-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function read(input: Partial<ConfigInput> = {}): ReturnType<typeof readConfig> {
  return readConfig({ env: {}, cwd: folder, flags: {}, ...input });
}

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function problemsOf(input: Partial<ConfigInput>): string {
  try {
    read(input);
  } catch (error) {
    if (error instanceof HotcellError && error.code === 'CONFIG_INVALID') return error.message;
    throw error;
  }
  throw new Error('the settings were accepted');
}

describe('sources', () => {
  test('[WB-05] without any source every value is the default', () => {
    const { config, origins } = read();
    expect(config.port).toBe(8000);
    expect(config.limits.memoryBytes).toBe(256 * 1024 ** 2);
    expect(new Set(Object.values(origins))).toEqual(new Set(['default']));
    expect(Object.keys(origins)).toEqual([...SETTINGS.keys()]);
  });

  test('flags win over the environment, that over the file', () => {
    const path = write('hotcell.yaml', 'port: 1\nhost: 10.0.0.1\ndriver: subprocess\n');
    const { config, origins } = read({
      env: { HOTCELL_PORT: '2', HOTCELL_HOST: '10.0.0.2' },
      flags: { port: '3' },
      flagNames: { port: '--port' },
    });
    expect(config).toMatchObject({ port: 3, host: '10.0.0.2', driver: 'subprocess' });
    expect(origins).toMatchObject({
      port: 'flag --port',
      host: 'environment HOTCELL_HOST',
      driver: `file ${path}`,
      runtime: 'default',
    });
  });

  test('one key of a section does not reset its neighbours', () => {
    write('hotcell.yaml', 'pool:\n  size: 9\nlimits:\n');
    const { config, origins } = read({ env: { HOTCELL_POOL_QUEUE: '7' }, flags: { 'pool.booting': '2' } });
    expect(config.pool).toMatchObject({ size: 9, queue: 7, booting: 2, idleMs: 1_800_000 });
    expect(origins['pool.booting']).toBe('flag --set pool.booting');
  });

  test('nor does one key of a section within a section', () => {
    write('hotcell.yaml', 'sessions:\n  max: 3\n  rateLimit:\n    burst: 7\n');
    const flags = { 'sessions.rateLimit.perMinute': '0', 'sessions.limits.cpus': '2' };
    const { config } = read({ env: { HOTCELL_SESSIONS_LIMITS_PROCESSES: '9' }, flags });
    expect(config.sessions).toMatchObject({ max: 3, rateLimit: { burst: 7, perMinute: 0 } });
    expect(config.sessions.limits).toMatchObject({ cpus: 2, processes: 9, diskBytes: 512 * 1024 ** 2 });
  });

  test('[MC-02] EXECUTION_MODE chooses the mode, also against our own name for it, but not against a flag', () => {
    expect(read().config.mcp.mode).toBe('preload');
    const env = { EXECUTION_MODE: 'container', HOTCELL_MCP_MODE: 'preload' };
    const { config, origins } = read({ env });
    expect([config.mcp.mode, origins['mcp.mode']]).toEqual(['container', 'environment EXECUTION_MODE']);
    expect(read({ env, flags: { 'mcp.mode': 'preload' } }).config.mcp.mode).toBe('preload');
    expect(problemsOf({ env: { EXECUTION_MODE: 'vm' } })).toContain('environment EXECUTION_MODE');
  });

  test('[MC-06] code of AI clients has limits of its own', () => {
    const { limits } = read({ env: { HOTCELL_MCP_LIMITS_CPUS: '1' } }).config.mcp;
    expect(limits).toMatchObject({ cpus: 1, memoryBytes: 512 * 1024 ** 2, wallTimeMs: 30_000 });
    expect(read().config.mcp.limits.cpus).toBe(2);
  });

  test('a named file replaces the usual one, and must exist', () => {
    write('hotcell.yaml', 'port: 1\n');
    write('other.yaml', 'port: 2\n');
    expect(read({ configFile: 'other.yaml' }).config.port).toBe(2);
    expect(problemsOf({ configFile: 'none.yaml' })).toBe(`file ${join(folder, 'none.yaml')}: does not exist`);
  });

  test('languages come from the file, or as JSON from the environment', () => {
    write(
      'hotcell.yaml',
      'languages:\n  lua:\n    extension: .lua\n    command: [lua, "{filepath}"]\n  ruby: false\n',
    );
    expect(read().config.languages).toMatchObject({ lua: { extension: 'lua' }, ruby: false });
    expect(read({ env: { HOTCELL_LANGUAGES: '{"bash": false}' } }).config.languages).toEqual({ bash: false });
  });
});

describe('environment names', () => {
  test('follow from the key path by one rule, and no two are the same', () => {
    expect(toEnvironmentName('apiKey')).toBe('HOTCELL_API_KEY');
    expect(toEnvironmentName('limits.memoryBytes')).toBe('HOTCELL_LIMITS_MEMORY_BYTES');
    expect(toEnvironmentName('pool.size')).toBe('HOTCELL_POOL_SIZE');
    expect(new Set([...SETTINGS.values()].map((setting) => setting.environmentName)).size).toBe(
      SETTINGS.size,
    );
  });

  test('every setting has a description', () => {
    expect([...SETTINGS.values()].filter((setting) => setting.description === '')).toEqual([]);
  });
});

describe('text values', () => {
  test.each([
    ['HOTCELL_LIMITS_MEMORY_BYTES', '256m', 256 * 1024 ** 2],
    ['HOTCELL_LIMITS_MEMORY_BYTES', '1G', 1024 ** 3],
    ['HOTCELL_LIMITS_MEMORY_BYTES', '16777216', 16 * 1024 ** 2],
    ['HOTCELL_LIMITS_WALL_TIME_MS', '1.5s', 1500],
    ['HOTCELL_LIMITS_WALL_TIME_MS', '2 min', 120_000],
    ['HOTCELL_LIMITS_WALL_TIME_MS', '250ms', 250],
    ['HOTCELL_LIMITS_CPUS', '0.25', 0.25],
    ['HOTCELL_ALLOW_ANONYMOUS', '1', true],
    ['HOTCELL_ALLOW_ANONYMOUS', 'false', false],
    ['HOTCELL_WEAKER', 'cpus, network,', ['cpus', 'network']],
    ['HOTCELL_WEAKER', '', []],
  ])('%s=%s is read', (name, text, value) => {
    const { config, origins } = read({ env: { [name]: text } });
    const [path = ''] = Object.entries(origins).find(([, origin]) => origin !== 'default') ?? [];
    expect(path.split('.').reduce<unknown>((node, part) => Object(node)[part], config)).toEqual(value);
  });

  test('units stand in the file too', () => {
    write('hotcell.yaml', 'limits: { memoryBytes: 64m, wallTimeMs: 5s }\n');
    expect(read().config.limits).toMatchObject({ memoryBytes: 64 * 1024 ** 2, wallTimeMs: 5000 });
  });

  test.each([
    ['HOTCELL_PORT', '12abc', 'environment HOTCELL_PORT: must be a number, not "12abc"'],
    ['HOTCELL_PORT', '0x10', 'environment HOTCELL_PORT: must be a number, not "0x10"'],
    ['HOTCELL_PORT', '', 'environment HOTCELL_PORT: must be a number, not ""'],
    ['HOTCELL_PORT', '80m', 'environment HOTCELL_PORT: must be a number, not "80m"'],
    ['HOTCELL_PORT', '65536', 'environment HOTCELL_PORT: expected number to be <=65535, not 65536'],
    [
      'HOTCELL_ALLOW_ANONYMOUS',
      'yes',
      'environment HOTCELL_ALLOW_ANONYMOUS: must be true, false, 1 or 0, not "yes"',
    ],
    ['HOTCELL_HOST', ' ', 'environment HOTCELL_HOST: must not be empty; unset it instead, not " "'],
  ])('%s=%s is refused', (name, text, message) => {
    expect(problemsOf({ env: { [name]: text } })).toBe(message);
  });
});

describe('refusals', () => {
  test('all problems of all sources come at once, each with its source and the nearest key', () => {
    const path = write(
      'hotcell.yaml',
      'prot: 1\nlimits:\n  memorybytes: 5\n  cpus: many\nmemoryBytes: 1\npool: 3\ndriver: podman\n',
    );
    const message = problemsOf({
      env: { HOTCELL_POOL_SIZES: '1', HOTCELL_PORT: 'x', PATH: '/bin' },
      flags: { 'pool.sise': '1' },
    });
    expect(message.split('\n')).toEqual([
      '9 settings are wrong:',
      `  file ${path}: prot: unknown key; did you mean port?`,
      `  file ${path}: limits.memorybytes: unknown key; did you mean limits.memoryBytes?`,
      `  file ${path}: memoryBytes: unknown key; did you mean limits.memoryBytes?`,
      `  file ${path}: pool: must be a mapping of settings, not 3`,
      '  environment HOTCELL_POOL_SIZES: unknown variable; did you mean HOTCELL_POOL_SIZE?',
      '  environment HOTCELL_PORT: must be a number, not "x"',
      '  flag --set pool.sise: unknown key; did you mean pool.size?',
      `  file ${path}: driver: expected one of "auto"|"oci"|"apple"|"docker"|"preload"|"subprocess", not "podman"`,
      `  file ${path}: limits.cpus: expected number, received string, not "many"`,
    ]);
  });

  test('a wrong language is named down to its field', () => {
    write(
      'hotcell.yaml',
      'languages:\n  lua: { extension: lua, comand: [lua] }\n  awk: true\n  BAD: false\n',
    );
    const message = problemsOf({});
    expect(message).toContain('languages.lua.command: expected array, received undefined');
    expect(message).toContain('languages.lua.comand: unknown key; did you mean command?');
    expect(message).toContain('languages.awk: must be a language or false, not true');
    expect(message).toContain('languages.BAD: the name must be a lower-case word');
  });

  test('a secret is never shown', () => {
    write('hotcell.yaml', 'apiKey: 12345671234567\n');
    expect(problemsOf({})).not.toContain('12345671234567');
    expect(problemsOf({ env: { HOTCELL_API_KEY: 'sesame' } })).not.toContain('sesame');
    expect(problemsOf({ env: { HOTCELL_APIKEY: 'sesame' } })).not.toContain('sesame');
  });

  test('broken YAML is refused with its place', () => {
    const path = write('hotcell.yaml', 'port: 1\nport: 2\n');
    expect(problemsOf({})).toBe(`file ${path}: Map keys must be unique at line 2, column 1`);
  });

  test('keys of the object prototype are unknown keys', () => {
    write('hotcell.yaml', '__proto__: { port: 1 }\nconstructor: 1\n');
    expect(problemsOf({})).toContain('constructor: unknown key');
    expect(problemsOf({})).toContain('__proto__: unknown key');
  });
});
