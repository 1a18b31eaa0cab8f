import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parseNpmSettings, planNpm } from './npm-settings.ts';
import { parsePipSettings, planPip } from './pip-settings.ts';
import { presetVariables, readPresets } from './presets.ts';
import { toPattern, withoutSecrets } from './registry-url.ts';
import type { AskProgram } from './ask-program.ts';

describe('the URL of a registry', () => {
  test.each([
    ['https://packages.example/', 'packages.example'],
    ['https://Packages.Example/npm/', 'packages.example'],
    ['https://user:secret@packages.example/simple', 'packages.example'],
    ['http://mirror.example:8080/simple', 'mirror.example:8080'],
    ['https://mirror.example:443/simple', 'mirror.example'],
    ['files.example', 'files.example'],
    ['http://10.0.0.1:4873/', undefined],
    ['http://[::1]/', undefined],
    ['http://0x7f.1/', undefined],
    ['file:///opt/wheels', undefined],
    ['ftp://packages.example/', undefined],
    ['/opt/wheels', undefined],
    ['', undefined],
    ['https://', undefined],
    ['https://*/', undefined],
  ])('[RS-15] %s is the pattern %s', (url, pattern) => {
    expect(toPattern(url)).toBe(pattern);
  });

  test('[RS-15] is told to cells without what only the operator knows', () => {
    expect(withoutSecrets('https://user:secret@packages.example/simple?token=secret#secret')).toBe(
      'https://packages.example/simple',
    );
    expect(withoutSecrets('file:///secret')).toBeUndefined();
  });
});

describe('npm', () => {
  test('[RS-15] is asked for its registry and those of scopes', () => {
    const settings = parseNpmSettings(
      JSON.stringify({
        registry: 'https://packages.example/',
        '@own:registry': 'https://own.example:4873/',
        'replace-registry-host': 'https://no.example/',
        'audit-level': null,
      }),
    );
    expect(planNpm(settings, 'https://packages.example/')).toEqual({
      urls: ['https://packages.example/', 'https://own.example:4873/'],
      variables: {},
    });
  });

  test('[RS-15] in a cell is told of a mirror', () => {
    const settings = new Map([['registry', 'https://user:secret@mirror.example/npm/']]);
    expect(planNpm(settings, 'https://packages.example/').variables).toEqual({
      npm_config_registry: 'https://mirror.example/npm/',
    });
  });

  test.each(['', 'nonsense', '[]', 'null', '{"registry":'])('[RS-15] may answer %j', (json) => {
    expect(() => parseNpmSettings(json)).toThrow(Error);
  });
});

describe('pip', () => {
  const OWN = ['https://index.example/simple', 'files.example'];

  test('[RS-15] that nobody has configured uses its own index, and the host of the files', () => {
    const settings = parsePipSettings(":env:.cert='/etc/ca.pem'\n:env:.find-links='/opt/wheels'\n");
    expect(planPip(settings, OWN)).toEqual({ urls: OWN, variables: {} });
  });

  test('[RS-15] that has a mirror uses that, and does not need the host of the files', () => {
    const settings = parsePipSettings("global.index-url='https://user:secret@mirror.example/simple'\n");
    expect(planPip(settings, OWN)).toEqual({
      urls: ['https://user:secret@mirror.example/simple'],
      variables: { PIP_INDEX_URL: 'https://mirror.example/simple' },
    });
  });

  test('[RS-15] prefers its variables, and may have more than one index', () => {
    const settings = parsePipSettings(
      [
        "global.index-url='https://file.example/simple'",
        String.raw`global.extra-index-url='\nhttps://one.example/simple\nhttps://two.example/simple'`,
        ":env:.index-url='https://variable.example/simple'",
        ":env:.find-links='https://links.example/ /opt/wheels'",
        "global.trusted-host='no.example'",
      ].join('\n'),
    );
    expect(settings).toEqual({
      index: 'https://variable.example/simple',
      extra: ['https://one.example/simple', 'https://two.example/simple'],
      links: ['https://links.example/'],
    });
    expect(planPip(settings, OWN).variables).toEqual({
      PIP_INDEX_URL: 'https://variable.example/simple',
      PIP_EXTRA_INDEX_URL: 'https://one.example/simple https://two.example/simple',
    });
  });

  test('[RS-15] with its own index beside another one needs the host of the files', () => {
    const settings = parsePipSettings(
      "global.extra-index-url='https://INDEX.example/other'\nglobal.index-url='https://mirror.example/'",
    );
    expect(planPip(settings, OWN).urls).toContain('files.example');
  });
});

describe('presets', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-presets-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('[RS-15] are what npm and pip say', async () => {
    const run: AskProgram = (program, args) => {
      if (program === 'npm')
        return Promise.resolve(
          args.includes('get') ? 'https://a.example/\n' : '{"registry":"https://b.example/"}',
        );
      return Promise.resolve(args.includes('-c') ? 'https://c.example/simple files.example\n' : '');
    };
    const presets = await readPresets({ env: {}, run });
    expect(presets.npm).toEqual({
      hosts: ['b.example'],
      variables: { npm_config_registry: 'https://b.example/' },
    });
    expect(presets.pypi).toEqual({ hosts: ['c.example', 'files.example'], variables: {} });
    expect(presets.github.hosts).toContain('github.com');
    expect(presetVariables(presets, ['npm', 'pypi'])).toEqual({ npm_config_registry: 'https://b.example/' });
    expect(presetVariables(presets, ['pypi', 'example.org'])).toEqual({});
  });

  test('[RS-15] are empty, with a reason, where npm and pip are missing', async () => {
    const { npm, pypi } = await readPresets({ env: { PATH: folder } });
    expect(npm).toEqual({ hosts: [], problem: 'npm cannot be asked for its registry: npm is not installed' });
    expect(pypi).toEqual({
      hosts: [],
      problem: 'pip cannot be asked for its registry: python3 is not installed',
    });
  });

  test('[RS-15] are empty where they fail, and nothing of what they say is repeated', async () => {
    for (const name of ['npm', 'python3']) {
      writeFileSync(join(folder, name), '#!/bin/sh\necho secret; echo secret >&2; exit 7\n');
      chmodSync(join(folder, name), 0o755);
    }
    const presets = await readPresets({ env: { PATH: folder } });
    expect(presets.npm.problem).toBe('npm cannot be asked for its registry: npm failed with 7');
    expect(JSON.stringify(presets)).not.toContain('secret');
    writeFileSync(join(folder, 'npm'), '#!/bin/sh\necho secret\n');
    expect(JSON.stringify((await readPresets({ env: { PATH: folder } })).npm)).not.toContain('secret');
  });

  test('[RS-15] of a real npm with a mirror have the mirror', async () => {
    const npmrc = join(folder, 'npmrc');
    writeFileSync(npmrc, 'registry=https://mirror.example/npm/\n@own:registry=https://own.example/\n');
    const env = { PATH: process.env['PATH'], HOME: folder, npm_config_userconfig: npmrc };
    const { npm } = await readPresets({ env });
    expect(npm.hosts.toSorted()).toEqual(['mirror.example', 'own.example']);
    expect(npm.variables).toEqual({ npm_config_registry: 'https://mirror.example/npm/' });
  });
});
