import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
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
import {
  encodeCredentials,
  newCredentialFolder,
  toRemoveRequest,
  withCredentials,
  type AgentCredentials,
} from '../../src/fleet/environment/credentials.ts';
import { Secret } from '../../src/fleet/environment/secret.ts';
import { runWithCredentials } from './harness.ts';

const VALUE = 'sk-the-real-one';
const NO_CREDENTIALS: AgentCredentials = { variables: {}, files: [] };
/** The exit code of who cannot make sense of what it gets. */
const CREDENTIALS_REFUSED = 125;
let folder = '';
let home = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-credentials-'));
  home = newCredentialFolder(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

const files = (...list: readonly [string, 0o400 | 0o600, string][]): AgentCredentials => ({
  variables: {},
  files: list.map(([path, mode, content]) => ({ path, mode, content: new Secret(content) })),
});
const modeOf = (path: string): number => lstatSync(path).mode & 0o7777;
const field = (text: string): string => `${Buffer.byteLength(text)}\n${text}`;

describe('an agent that is started with credentials', () => {
  test('[FL-08] has them, its home folder, its folder to work in, and the rest of stdin', async () => {
    const credentials: AgentCredentials = {
      variables: { KEY: new Secret(VALUE), ODD: new Secret('a\nb="$(x)" \u00e4') },
      files: files(
        ['.claude/.credentials.json', 0o600, '{"a":\n1}'],
        ['.claude/deep/x', 0o400, ''],
        ['.claude.json', 0o600, '{}'],
      ).files,
    };
    const { argv, verbatim } = withCredentials(home, [
      'sh',
      '-c',
      'printf "%s|" "$KEY" "$ODD" "$HOME" "$KEPT" "$1" "$PWD"; cat',
      'sh',
      '$x {guest}',
    ]);
    expect(argv).toEqual(['perl', '{guest}/with-credentials.pl']);
    const input = Buffer.concat([encodeCredentials(credentials), Buffer.from('5\nthe task\n')]);
    const ended = await runWithCredentials(verbatim?.argv ?? [], input);
    expect(ended).toEqual({
      code: 0,
      stdout: `${VALUE}|a\nb="$(x)" \u00e4|${home}|yes|$x {guest}|/usr|5\nthe task\n`,
      stderr: '',
    });
    expect(readFileSync(join(home, '.claude/.credentials.json'), 'utf8')).toBe('{"a":\n1}');
    expect([home, `${home}/.claude`, `${home}/.claude/deep`].map(modeOf)).toEqual([0o700, 0o700, 0o700]);
    expect(
      ['.claude/.credentials.json', '.claude/deep/x', '.claude.json'].map((path) => modeOf(join(home, path))),
    ).toEqual([0o600, 0o400, 0o600]);
  });

  test('[FL-08] shows them on no command line', async () => {
    const credentials = { ...NO_CREDENTIALS, variables: { KEY: new Secret(VALUE) } };
    const look = 'tr "\\0" " " </proc/self/cmdline; tr "\\0" " " </proc/$PPID/cmdline';
    const { stdout } = await runWithCredentials(
      [home, '--', 'sh', '-c', look],
      encodeCredentials(credentials),
    );
    expect(stdout).toContain('tr');
    expect(stdout).not.toContain(VALUE);
  });

  test('[FL-08] gets them whole when they come byte by byte, and its exit code is its own', async () => {
    const credentials = { ...files(['x', 0o600, 'y'.repeat(300)]), variables: { KEY: new Secret(VALUE) } };
    const bytes = [...encodeCredentials(credentials)].map((byte) => Uint8Array.of(byte));
    const ended = await runWithCredentials(
      [home, '--', 'sh', '-c', 'echo $KEY; exit 3'],
      [...bytes, Buffer.from('rest')],
    );
    expect(ended).toEqual({ code: 3, stdout: `${VALUE}\n`, stderr: '' });
  });

  test('[FL-08] may have large files', async () => {
    const content = 'z'.repeat(4 * 1024 * 1024);
    const ended = await runWithCredentials(
      [home, '--', 'wc', '-c'],
      Buffer.concat([encodeCredentials(files(['big', 0o400, content])), Buffer.from('1234')]),
    );
    expect(ended.stdout.trim()).toBe('4');
    expect(readFileSync(join(home, 'big'), 'utf8')).toBe(content);
  });

  test('[FL-08] leaves nothing behind when its folder is removed', async () => {
    await runWithCredentials([home, '--', 'true'], encodeCredentials(files(['a/b', 0o400, VALUE])));
    expect(existsSync(home)).toBe(true);
    const { argv, verbatim } = toRemoveRequest(home);
    const [program, ...words] = [...argv, ...(verbatim?.argv ?? [])];
    execFileSync(program, words);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ['127', '/no/such/program', 127],
    ['126', '/usr', 126],
  ])('[FL-08] that cannot be run is the exit code %s', async (_what, program, code) => {
    const ended = await runWithCredentials([home, '--', program], encodeCredentials(NO_CREDENTIALS));
    expect(ended.code).toBe(code);
    expect(ended.stderr).toContain(program);
  });

  test('[FL-08] may have a home folder that is there, and gets it closed to others', async () => {
    mkdirSync(home, { mode: 0o755 });
    const { code } = await runWithCredentials(
      [`${home}/`, '--', 'true'],
      encodeCredentials(files(['x', 0o600, VALUE])),
    );
    expect([code, modeOf(home)]).toEqual([0, 0o700]);
  });
});

describe('credentials that are wrong', () => {
  const marked = (...fields: readonly string[]): string => field(fields.map(field).join(''));
  test.each([
    ['nothing', ''],
    ['no number', `x\n${VALUE}`],
    ['a number without end', '1'.repeat(20)],
    ['an empty number', `\n${VALUE}`],
    ['a negative number', `-1\n${VALUE}`],
    ['too many bytes', `99999999\n${VALUE}`],
    ['fewer bytes than announced', `100\n${VALUE}`],
    ['a field without length', field(VALUE)],
    ['a field that is cut off', field(`100\n${VALUE}`)],
    ['more fields than there should be', marked('0', '0', VALUE)],
    ['fewer fields', marked('1', `A=${VALUE}`)],
    ['a count that is none', marked(VALUE, '0')],
    ['a variable without a name', marked('1', `=${VALUE}`, '0')],
    ['a variable without a value', marked('1', VALUE, '0')],
    ['NUL in a value', marked('1', `A=${VALUE}\0`, '0')],
    ['a name for a shell', marked('1', `A-B=${VALUE}`, '0')],
    ['an absolute path', marked('0', '1', '/x', '600', VALUE)],
    ['a path that leads up', marked('0', '1', 'a/../../x', '600', VALUE)],
    ['an empty path', marked('0', '1', '', '600', VALUE)],
    ['a path that ends in a slash', marked('0', '1', 'a/', '600', VALUE)],
    ['a mode for others', marked('0', '1', 'x', '644', VALUE)],
    ['a mode that runs', marked('0', '1', 'x', '700', VALUE)],
  ])('[FL-08] %s: nothing is started, nothing written, nothing told', async (_what, text) => {
    const ended = await runWithCredentials([home, '--', 'echo', 'started'], Buffer.from(text));
    expect(ended).toMatchObject({ code: CREDENTIALS_REFUSED, stdout: '' });
    expect(ended.stderr).toMatch(/^with-credentials\.pl: .+\n$/);
    expect(ended.stderr).not.toContain(VALUE);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ['no command', ['HOME', '--']],
    ['no dashes', ['HOME', 'echo', 'started']],
    ['a relative home folder', ['home', '--', 'echo', 'started']],
    ['a home folder with dots', ['HOME/../x', '--', 'echo', 'started']],
    ['the root folder', ['/', '--', 'echo', 'started']],
  ])('[FL-08] %s is refused', async (_what, words) => {
    const ended = await runWithCredentials(
      words.map((word) => word.replace('HOME', home)),
      encodeCredentials(NO_CREDENTIALS),
    );
    expect(ended).toMatchObject({ code: CREDENTIALS_REFUSED, stdout: '' });
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each<[string, (elsewhere: string) => void]>([
    ['the home folder is a link', (elsewhere) => symlinkSync(elsewhere, home)],
    [
      'a folder on the way is a link',
      (elsewhere) => {
        mkdirSync(home);
        symlinkSync(elsewhere, join(home, 'a'));
      },
    ],
    [
      'the file is a link',
      (elsewhere) => {
        mkdirSync(join(home, 'a'), { recursive: true });
        symlinkSync(join(elsewhere, 'b'), join(home, 'a/b'));
      },
    ],
    [
      'the file is there',
      () => {
        mkdirSync(join(home, 'a'), { recursive: true });
        writeFileSync(join(home, 'a/b'), 'old');
      },
    ],
    [
      'a folder on the way is a file',
      () => {
        mkdirSync(home);
        writeFileSync(join(home, 'a'), '');
      },
    ],
  ])('[FL-08] %s: nothing is written through it', async (_what, prepare) => {
    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere);
    prepare(elsewhere);
    const ended = await runWithCredentials(
      [home, '--', 'echo', 'started'],
      encodeCredentials(files(['a/b', 0o600, VALUE])),
    );
    expect(ended).toMatchObject({ code: CREDENTIALS_REFUSED, stdout: '' });
    expect(ended.stderr).not.toContain(VALUE);
    expect(readdirSync(elsewhere)).toEqual([]);
    const found = join(home, 'a/b');
    expect(existsSync(found) ? readFileSync(found, 'utf8') : 'old').toBe('old');
  });
});
