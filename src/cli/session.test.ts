import { spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { ScriptedServer } from '../http/scripted-server.double.ts';
import { SESSION } from '../http/sessions/scripted-sessions.double.ts';
import { toTar } from '../lib/tar-archive.ts';
import { COMPILE_CACHE, MAIN } from '../../test/support/command.ts';
import { RUNTIME_TYPES } from '../core/session-words.ts';

const COMMANDS = ['create', 'list', 'exec', 'shell', 'put', 'get', 'sync', 'rm', 'kill', 'logs'];

let folder = '';
let server: ScriptedServer;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-session-'));
  server = await ScriptedServer.start();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** The real command beside the server, with nothing in its environment but what the test gives. */
function begin(
  args: readonly string[],
  options: { env?: Record<string, string>; input?: string | Buffer } = {},
) {
  const child = spawn(process.execPath, [MAIN, 'session', ...args], {
    cwd: folder,
    env: { HOTCELL_PORT: String(server.port), ...COMPILE_CACHE, ...options.env },
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  child.stdin?.end(options.input);
  const said = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (part: string) => (said.stdout += part));
  child.stderr?.setEncoding('utf8').on('data', (part: string) => (said.stderr += part));
  const done = new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (status) => resolve({ status, ...said }));
  });
  return { child, done };
}

const session = (args: readonly string[], options: Parameters<typeof begin>[1] = {}) =>
  begin(args, options).done;
const calls = (): unknown[][] => server.sessions.session.calls;

describe('help', () => {
  test.each(COMMANDS)('[WB-03] session %s --help teaches with an example', async (name) => {
    const { status, stdout } = await session([name, '--help']);
    expect(status).toBe(0);
    expect(stdout).toContain('Examples:\n');
    expect(stdout).toContain(`hotcell session ${name} `);
    expect(stdout).not.toContain('--api-key');
  });

  test('[WB-03] the group names every command; the runtimes are those of the wire', async () => {
    const { stdout } = await session(['--help']);
    for (const name of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
    const create = await session(['create', '--help']);
    expect(create.stdout.replaceAll(/\s+/g, ' ')).toContain(
      RUNTIME_TYPES.map((name) => `"${name}"`).join(', '),
    );
  });
});

describe('sessions', () => {
  test('[RS-20] create prints the id and nothing else', async () => {
    const args = [
      'create',
      'shop',
      '--runtime',
      'node',
      '--network=npm,api.example.org',
      '--limit',
      'memory_mb=512',
      '--ttl',
      '60',
    ];
    expect(await session(args)).toEqual({ status: 0, stdout: `${SESSION}\n`, stderr: '' });
    expect(server.sessions.created[0]).toMatchObject({
      project: 'shop',
      runtime: 'node',
      network: ['npm', 'api.example.org'],
      limits: { memoryBytes: 512 * 1024 * 1024 },
      ttlMs: 60_000,
    });
  });

  test('[RS-20] list, rm and kill', async () => {
    expect((await session(['list'])).stdout).toMatch(/^SESSION +PROJECT .*\nsession_\w+ +proj_abc123 /);
    expect(JSON.parse((await session(['list', '--json'])).stdout)).toMatchObject([
      { project_id: 'proj_abc123' },
    ]);
    expect((await session(['kill', SESSION])).stderr).toContain('nothing was running');
    server.sessions.session.addExec();
    expect((await session(['kill', SESSION, 'exec_1'])).stdout).toBe('ended exec_1\n');
    expect((await session(['rm', SESSION])).stdout).toBe(`ended ${SESSION}\n`);
    expect(calls().at(-1)).toEqual(['destroy']);
  });

  test.each<[string, string[], number, string]>([
    ['an unknown session', ['exec', 'nope', 'ls'], 125, 'hotcell session list'],
    ['an ended session', ['logs', 'session_old'], 125, 'Make a new one with'],
    ['nobody there', ['list', '--url', 'http://127.0.0.1:9'], 125, 'hotcell up'],
    ['no address', ['list', '--url', 'ftp://x'], 2, 'http://127.0.0.1:8000'],
    ['a wrong name', ['create', '../x'], 2, ''],
    ['a wrong limit', ['create', 'x', '--limit', 'ram=1'], 2, 'memory_mb'],
    ['no terminal', ['shell', SESSION], 2, 'session exec'],
    ['a file that is not there', ['put', SESSION, 'nope'], 2, 'exists'],
    ['a way out', ['put', SESSION, '.', '../x'], 2, 'below the workspace'],
    ['an unknown command', ['exce', SESSION], 2, 'exec'],
  ])('[RS-20, WB-03] %s: what is wrong, what to do, exit code', async (_name, args, status, hint) => {
    const result = await session(args);
    expect({ status: result.status, stdout: result.stdout }).toEqual({ status, stdout: '' });
    expect(result.stderr).toMatch(/hotcell: .*\n {2}→ .*\n$/);
    expect(result.stderr.split('→').at(-1)).toContain(hint);
  });

  test('[RS-20] the key comes from HOTCELL_API_KEY; errors are JSON with --json', async () => {
    await using locked = await ScriptedServer.start({ apiKey: 'open-sesame' });
    const url = ['--url', `http://127.0.0.1:${locked.port}`];
    const refused = await session(['list', '--json', ...url]);
    expect(refused.status).toBe(125);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      code: 'UNAUTHORIZED',
      hint: expect.stringContaining('HOTCELL_API_KEY'),
    });
    expect(await session(['list', ...url], { env: { HOTCELL_API_KEY: 'open-sesame' } })).toMatchObject({
      status: 0,
    });
  });

  test('[RS-20] SECURITY: words of a cell cannot command the terminal', async () => {
    server.sessions.session.failing = {
      kill: new HotcellError('FILE_REFUSED', 'a\u001b]0;evil\u0007\u009b31m.txt is odd'),
    };
    const { stderr } = await session(['kill', SESSION]);
    expect(stderr).toContain('a\\x1b]0;evil\\x07\\x9b31m.txt is odd');
  });
});

describe('exec', () => {
  test('[RS-20] its bytes, its streams, its exit code', async () => {
    server.sessions.session.onExec = (exec) => {
      exec.print('stdout', 'out\n');
      exec.print('stderr', 'err\n');
      exec.cut(3);
      exec.end({ exitCode: 42, ok: false, cwdNote: 'the folder is gone' });
    };
    const { status, stdout, stderr } = await session([
      'exec',
      SESSION,
      '-e',
      'A=b',
      '--cwd',
      'src',
      '--timeout',
      '5',
      'a | b',
    ]);
    expect({ status, stdout }).toEqual({ status: 42, stdout: 'out\n' });
    expect(stderr).toMatch(/^err\nhotcell: 3 bytes .*\nhotcell: the folder is gone\n$/);
    expect(calls()[0]).toMatchObject([
      'exec',
      { command: 'a | b', env: { A: 'b' }, cwd: 'src', timeoutMs: 5000, onBusy: 'wait', background: false },
    ]);
    await session(['exec', SESSION, '--reject', '--', 'grep', '-r', "it's", '--json']);
    expect(calls()[1]).toMatchObject(['exec', { command: `grep -r 'it'\\''s' --json`, onBusy: 'reject' }]);
  });

  test('[RS-20] an end that nobody saw is our failure, in words', async () => {
    const end = { reason: 'cell_lost' as const, message: 'the cell was lost', signal: null, killedBy: null };
    server.sessions.session.onExec = (exec) => exec.end({ exitCode: -1, ok: false, end });
    expect(await session(['exec', SESSION, 'x'])).toEqual({
      status: 125,
      stdout: '',
      stderr: 'hotcell: the cell was lost\n',
    });
  });

  test('[RS-20] what is piped in: text at once, everything else as it comes, or nothing', async () => {
    expect((await session(['exec', SESSION, 'cat'], { input: 'hello €\n' })).status).toBe(0);
    expect(calls()[0]).toMatchObject(['exec', { stdin: 'hello €\n', background: false }]);
    await session(['exec', SESSION, '-n', 'cat'], { input: 'hello' });
    expect(calls()[1]).toMatchObject(['exec', expect.not.objectContaining({ stdin: expect.anything() })]);
    const bytes = Buffer.alloc(3_000_000, 'x');
    bytes[5] = 0xff;
    server.sessions.session.onExec = (exec) => {
      exec.closeStdin = () => exec.end({ exitCode: 9 });
    };
    expect((await session(['exec', SESSION, 'cat'], { input: bytes })).status).toBe(9);
    expect(calls()[2]).toMatchObject(['exec', { background: true }]);
    const typed = server.sessions.session.findExec('exec_3').calls.filter(([name]) => name === 'write');
    expect(Buffer.from(typed.map(([, part]) => String(part)).join(''), 'latin1').equals(bytes)).toBe(true);
  });

  test('[RS-20] Ctrl-C ends the command, and so does nobody who reads', async () => {
    server.sessions.session.onExec = (exec) => exec.print('stdout', 'started\n');
    const first = begin(['exec', SESSION, 'sleep 100']);
    await expect
      .poll(() => server.sessions.session.commands.get('exec_1')?.followers, { timeout: 20_000 })
      .toBe(1);
    first.child.kill('SIGINT');
    expect(await first.done).toMatchObject({ status: 130 });
    expect(server.sessions.session.findExec('exec_1').calls.at(-1)).toEqual(['kill']);
    const second = begin(['exec', SESSION, 'yes']);
    await expect
      .poll(() => server.sessions.session.commands.get('exec_2')?.followers, { timeout: 20_000 })
      .toBe(1);
    second.child.stdout?.destroy();
    const yes = server.sessions.session.findExec('exec_2');
    await expect
      .poll(() => {
        if (yes.followers > 0) yes.print('stdout', 'y\n');
        return yes.calls.at(-1);
      })
      .toEqual(['kill']);
    expect((await second.done).status).toBe(0);
  });

  test('[RS-20] in the background, and its output later', async () => {
    server.sessions.session.onExec = () => undefined;
    expect(await session(['exec', SESSION, '--background', 'serve'])).toMatchObject({
      status: 0,
      stdout: 'exec_1\n',
    });
    const exec = server.sessions.session.findExec('exec_1');
    exec.print('stdout', 'one\ntwo\n');
    exec.end();
    expect(await session(['logs', SESSION, '--follow', '--from', '4'])).toMatchObject({
      status: 0,
      stdout: 'two\n',
    });
    expect(JSON.parse((await session(['logs', SESSION, 'exec_1', '--json'])).stdout)).toMatchObject({
      state: 'ended',
    });
  });
});

describe('files', () => {
  test('[RS-20, RS-09] sync sends what is wanted and skips what can be made again', async () => {
    for (const name of ['src', 'node_modules/x', '.git', '.venv', 'dist', 'src/node_modules']) {
      mkdirSync(join(folder, 'p', name), { recursive: true });
      writeFileSync(join(folder, 'p', name, 'file'), name);
    }
    symlinkSync('/etc/passwd', join(folder, 'p/link'));
    const sent: string[][] = [];
    server.sessions.session.sync = ({ files }) => {
      sent.push(files.map(({ path }) => path));
      return Promise.resolve({ synced: 0, skipped: files.length, deleted: 0, needed: [] });
    };
    const { stdout, stderr } = await session(['sync', SESSION, 'p', '--exclude', 'dist']);
    expect(stdout).toBe('0 written, 1 unchanged, 0 removed\n');
    expect(stderr).toContain('link');
    expect(sent).toEqual([['src/file']]);
  });

  test('[RS-20, RS-08] put sends a file or a folder', async () => {
    mkdirSync(join(folder, 'd/e'), { recursive: true });
    writeFileSync(join(folder, 'd/e/f'), Buffer.from([255]), { mode: 0o755 });
    writeFileSync(join(folder, 'one'), 'x', { mode: 0o644 });
    await session(['put', SESSION, 'one', 'in/two']);
    await session(['put', SESSION, './d', 'in/']);
    expect((await session(['put', SESSION, 'd', '.'])).stdout).toBe('put 1 file\n');
    const paths = calls().map(([, body]) => body as { path: string; mode: number }[]);
    expect(paths).toMatchObject([
      [{ path: 'in/two', mode: 0o644 }],
      [{ path: 'in/d/e/f', mode: 0o755 }],
      [{ path: 'e/f' }],
    ]);
  });

  test('[RS-20] get brings all or nothing, and replaces nothing without a word', async () => {
    const content = Buffer.from('hello');
    const archive = toTar([
      { path: 'out/a', content, mode: 0o644 },
      { path: 'out/b/c', content, mode: 0o600 },
    ]);
    server.sessions.session.chunks = async function* chunks() {
      yield await Promise.resolve(archive);
    };
    expect((await session(['get', SESSION, 'out'])).stdout).toMatch(/^got 2 files, 10 B, as /);
    expect(readFileSync(join(folder, 'out/b/c'), 'utf8')).toBe('hello');
    const again = await session(['get', SESSION, 'out']);
    expect([again.status, readdirSync(join(folder, 'out'))]).toEqual([2, ['a', 'b']]);
    expect(await session(['get', SESSION, 'out/a', 'mine'])).toMatchObject({ status: 0 });
    writeFileSync(join(folder, 'mine'), 'precious');
    expect(await session(['get', SESSION, 'out/a', 'mine'])).toMatchObject({ status: 2 });
    expect(readFileSync(join(folder, 'mine'), 'utf8')).toBe('precious');
    // A link in its place is replaced, not followed.
    rmSync(join(folder, 'mine'));
    writeFileSync(join(folder, 'other'), 'precious');
    symlinkSync('other', join(folder, 'mine'));
    expect(await session(['get', SESSION, 'out/a', 'mine', '--force'])).toMatchObject({ status: 0 });
    expect([readFileSync(join(folder, 'mine'), 'utf8'), readFileSync(join(folder, 'other'), 'utf8')]).toEqual(
      ['hello', 'precious'],
    );
    server.sessions.session.chunks = async function* chunks() {
      yield await Promise.resolve(archive.subarray(0, 1500));
    };
    expect(await session(['get', SESSION, '.', 'half'])).toMatchObject({ status: 125 });
    expect(readdirSync(folder).toSorted()).toEqual(['mine', 'other', 'out']);
  });
});
