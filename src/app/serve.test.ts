import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SILENT_LOG } from '../core/log.ts';
import { Config } from './config/config.ts';
import { COMPILE_CACHE, MAIN } from '../../test/support/command.ts';
import { serve } from './serve.ts';

const REFUSAL = 'can be reached from other machines, and there is no key';
let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-serve-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The real command. Whatever it listens on, it has no root for cells and so ends before it serves. */
function up(args: readonly string[], env: Record<string, string> = {}) {
  const state = join(folder, 'state');
  const words = [MAIN, 'up', '--port', '0', '--set', 'rootfs=/nowhere', ...args];
  const { status, stderr } = spawnSync(process.execPath, words, {
    cwd: folder,
    encoding: 'utf8',
    env: { HOTCELL_STATE_DIR: state, ...COMPILE_CACHE, ...env },
    timeout: 20_000,
  });
  return { status, stderr, made: existsSync(state) };
}

describe('an address that other machines reach', () => {
  test('is refused without a key, with the way out and before anything is made', () => {
    const { status, stderr, made } = up(['--host', '0.0.0.0']);
    expect({ status, made }).toEqual({ status: 78, made: false });
    expect(stderr).toContain(`host: 0.0.0.0 ${REFUSAL}`);
    expect(stderr).toContain('→ Set HOTCELL_API_KEY, or say --allow-anonymous, or listen on 127.0.0.1.');
  });

  test.each([
    '::',
    '192.0.2.1',
    'example.org',
    '::ffff:192.0.2.1',
    '127.example.org',
    'localhost.example.org',
  ])('may be %s, too', async (host) => {
    const hooks = { log: SILENT_LOG, onReady() {}, onProgress() {} };
    await expect(serve(Config.parse({ host, rootfs: '/nowhere' }), hooks)).rejects.toThrow(REFUSAL);
  });

  test.each<[string, string[], Record<string, string>]>([
    ['a key', [], { HOTCELL_API_KEY: 'open-sesame' }],
    ['the word of the operator', ['--allow-anonymous'], {}],
  ])('is served with %s', (_what, args, env) => {
    const { status, stderr } = up(['--host', '0.0.0.0', ...args], env);
    expect(stderr).not.toContain(REFUSAL);
    expect(stderr).toContain('driver cannot serve');
    expect(status).toBe(125);
  });
});

test('the loopback needs no key', () => {
  expect(up(['--host', '127.8.9.1']).stderr).toContain('driver cannot serve');
});
