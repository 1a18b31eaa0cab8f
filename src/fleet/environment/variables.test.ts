import { describe, expect, test } from 'vitest';
import { describeDropped, describeUnmet, filterEnvironment, workerVariables } from './variables.ts';

const filter = (env: Record<string, string | undefined>, allow: string[] = [], key = 'ANTHROPIC_API_KEY') =>
  filterEnvironment(env, { environment: { allow }, credentials: { api_key_variable: key } });

describe('the environment of workers', () => {
  test('[FL-10] is the usual variables, and the rest is dropped by name', () => {
    const usual = {
      CI: 'true',
      LC_ALL: 'C',
      TZ: 'UTC',
      NODE_ENV: 'test',
      MAHABHARATHA_TOKEN_BUDGET: '9',
      ANTHROPIC_MODEL: 'm',
      ANTHROPIC_DEFAULT_OPUS_MODEL: 'o',
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: '5',
    };
    const { kept, dropped } = filter({ ...usual, EDITOR: 'vi', AWS_REGION: 'x', ZED: '1', GONE: undefined });
    expect(kept).toEqual(usual);
    expect(dropped).toEqual(['AWS_REGION', 'EDITOR', 'ZED']);
  });

  test('[FL-10] is passed as data: no character is special but NUL', () => {
    const DEBUG = 'a;b|c&`d`$(e)<f>"\'\n\u00e4 \u{1f600}';
    expect(filter({ DEBUG, CI: 'a\0b', TERM: '\ud800', LANG: '' })).toEqual({
      kept: { DEBUG, LANG: '' },
      dropped: ['CI', 'TERM'],
    });
  });

  test('[FL-10] has more of what is allowed, by name or with stars', () => {
    const env = { APP_ONE: '1', APP_TWO: '2', MY_APP: '3', X: '4' };
    expect(filter(env, ['APP_*', 'X']).kept).toEqual({ APP_ONE: '1', APP_TWO: '2', X: '4' });
    expect(filter(env, ['*']).kept).toEqual(env);
    expect(filter(env, ['app_*', 'APP', '']).kept).toEqual({});
  });

  test.each([
    'PATH',
    'HOME',
    'SHELL',
    'LD_PRELOAD',
    'LD_LIBRARY_PATH',
    'DYLD_INSERT_LIBRARIES',
    'PYTHONPATH',
    'PYTHONSTARTUP',
    'NODE_OPTIONS',
    'NODE_PATH',
    'TMPDIR',
    'BASH_ENV',
    'ENV',
    'BASH_FUNC_ls',
    'GIT_DIR',
    'GIT_SSH_COMMAND',
    'SSH_AUTH_SOCK',
    'PERL5OPT',
    'http_proxy',
    'HTTPS_PROXY',
    'all_proxy',
    'NO_PROXY',
    'npm_config_registry',
    'SSL_CERT_FILE',
    'DOCKER_HOST',
    'HOTCELL_API_KEY',
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'MY_KEY_NAME',
  ])('[FL-10] never has %s, whatever is allowed', (name) => {
    const filtered = filter({ [name]: 'x' }, ['*', name], 'MY_KEY_NAME');
    expect(filtered).toEqual({ kept: {}, dropped: [name] });
  });

  test.each([
    'OPENAI_API_KEY',
    'GITHUB_TOKEN',
    'DB_PASSWORD',
    'PGPASSWORD',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_ACCESS_KEY_ID',
    'SENTRY_DSN',
    'MY_CREDENTIALS',
    'MAHABHARATHA_API_KEY',
    'BASIC_AUTH',
  ])('[FL-10] has %s, which looks like a secret, only by its very name', (name) => {
    expect(filter({ [name]: 'x' }, ['*', `${name.slice(0, -1)}*`])).toEqual({ kept: {}, dropped: [name] });
    expect(filter({ [name]: 'x' }, [name]).kept).toEqual({ [name]: 'x' });
  });

  test('[FL-10] has no address with a password in it, and no name that is none', () => {
    const env = {
      ANTHROPIC_BASE_URL: 'https://me:secret@api.example/',
      DATABASE_URL: 'postgres://u:p@h/d',
      'A B': '1',
      __proto__x: '1',
    };
    expect(filter(env, ['*'])).toEqual({
      kept: { __proto__x: '1' },
      dropped: ['A B', 'ANTHROPIC_BASE_URL', 'DATABASE_URL'],
    });
    expect(filter({ ANTHROPIC_BASE_URL: 'http://api.example:8080/@x' }).dropped).toEqual([]);
  });

  test('[FL-10] is bounded', () => {
    const many = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`APP_${index}`, 'x'.repeat(100_000)]),
    );
    const { kept, dropped } = filter({ ...many, CI: 'x'.repeat(200_000) }, ['APP_*']);
    expect(JSON.stringify(kept).length).toBeLessThan(600_000);
    expect(dropped).toContain('CI');
    expect(Object.keys(kept).length + dropped.length).toBe(101);
  });
});

describe('the environment of workers that are plain processes', () => {
  const plain = (env: Record<string, string>, allow: string[] = [], key = 'ANTHROPIC_API_KEY') =>
    filterEnvironment(env, { environment: { allow }, credentials: { api_key_variable: key } }, 'subprocess');

  test('[FL-10] has the ways to programs and to the network that this machine has', () => {
    const ways = {
      http_proxy: 'http://proxy.corp:3128',
      HTTPS_PROXY: 'http://me:secret@proxy.corp:3128',
      NO_PROXY: 'localhost',
      SSL_CERT_FILE: '/etc/corp.pem',
      SSL_CERT_DIR: '/etc/certs',
      NODE_EXTRA_CA_CERTS: '/etc/corp.pem',
      REQUESTS_CA_BUNDLE: '/etc/corp.pem',
      CURL_CA_BUNDLE: '/etc/corp.pem',
      PIP_CERT: '/etc/corp.pem',
      npm_config_registry: 'https://npm.corp/',
    };
    expect(plain(ways)).toEqual({ kept: ways, dropped: [] });
    expect(filter(ways).kept).toEqual({});
  });

  test('[FL-10] has the PATH of the caller, but for what would mean the worktree', () => {
    expect(plain({ PATH: '/home/me/.nvm/bin::.:bin:/usr/bin:' }).kept).toEqual({
      PATH: '/home/me/.nvm/bin:/usr/bin:{tools}',
    });
  });

  test.each(['HOME', 'LD_PRELOAD', 'NODE_OPTIONS', 'BASH_ENV', 'GIT_DIR', 'ANTHROPIC_API_KEY', 'KEY_PROXY'])(
    '[FL-10] has no %s either, whatever is allowed',
    (name) => {
      expect(plain({ [name]: 'x' }, ['*', name], 'KEY_PROXY')).toEqual({ kept: {}, dropped: [name] });
    },
  );

  test('[FL-10] has a password in a URL only where it is a proxy', () => {
    const PIP_INDEX_URL = 'https://me:secret@pypi.corp/';
    expect(plain({ PIP_INDEX_URL }, ['*']).dropped).toEqual(['PIP_INDEX_URL']);
  });
});

describe('what is said of the variables that are dropped', () => {
  test('[FL-10] is a sentence with names, and with no end of them', () => {
    expect(describeDropped([])).toEqual([]);
    expect(describeDropped(['PATH'])).toEqual([
      'Workers do not get 1 variable of your environment: PATH. environment.allow in the configuration lets more through.',
    ]);
    const [many = ''] = describeDropped(
      Array.from({ length: 500 }, (_, index) => `V${index}${'x'.repeat(200)}`),
    );
    expect(many).toContain('500 variables');
    expect(many).toContain('and 480 more');
    expect(many.length).toBeLessThan(2000);
    expect(describeDropped(['A\u001b[31m'])[0]).toContain('A?[31m');
  });

  test('[FL-10] is told in any case of those that were asked for', () => {
    const dropped = ['AWS_SECRET_ACCESS_KEY', 'HOME', 'ZED'];
    expect(describeUnmet(dropped, ['APP_*', 'CI'])).toEqual([]);
    expect(describeUnmet(dropped, ['AWS_*', 'HOME'])).toEqual([
      expect.stringContaining('that workers do not get: AWS_SECRET_ACCESS_KEY, HOME. '),
    ]);
  });
});

describe('what tells a worker who it is', () => {
  test('[FL-03] has the names that agents know', () => {
    const facts = {
      worker: 2,
      feature: 'f',
      branch: 'b',
      worktree: '/workspace',
      specDir: '/workspace/.gsd/specs/f',
    };
    expect(workerVariables(facts)).toEqual({
      MAHABHARATHA_WORKER_ID: '2',
      MAHABHARATHA_FEATURE: 'f',
      MAHABHARATHA_BRANCH: 'b',
      MAHABHARATHA_WORKTREE: '/workspace',
      MAHABHARATHA_SPEC_DIR: '/workspace/.gsd/specs/f',
    });
    expect(workerVariables({ ...facts, taskId: 'T-1', attempt: 0, port: 50_000 })).toMatchObject({
      MAHABHARATHA_TASK_ID: 'T-1',
      TASK_ID: 'T-1',
      MAHABHARATHA_ATTEMPT: '0',
      ATTEMPT: '0',
      PORT: '50000',
    });
  });
});
