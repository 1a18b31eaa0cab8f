import { describe, expect, test } from 'vitest';
import { CliError } from '../support/apple-double/cli-error.ts';
import { toCompactJson, toPrettyJson } from '../support/apple-double/foundation-json.ts';
import { parseArguments, type ParsedCall } from '../support/apple-double/parse-arguments.ts';

/** A double is only worth something if it refuses what the real command would refuse. */

function parse(words: string, version = '1.2.2'): ParsedCall {
  const call = parseArguments(words.split(' '), version, true);
  if ('shown' in call) throw new Error(`shows ${call.shown}`);
  return call;
}

function refusalOf(words: string, version = '1.2.2'): { code: number; first: string } {
  try {
    parse(words, version);
  } catch (error) {
    if (error instanceof CliError) return { code: error.exitCode, first: error.text.split('\n')[0] ?? '' };
    throw error;
  }
  throw new Error(`not refused: ${words}`);
}

describe('options', () => {
  test.each([
    ['run --name a img', 'name', ['a']],
    ['run --name=a img', 'name', ['a']],
    ['run --name a --name b img', 'name', ['b']],
    ['run -e A=1 --env B=2 img', 'env', ['A=1', 'B=2']],
    ['run -it img', 'tty', ['']],
    ['run -ite FOO=1 img', 'env', ['FOO=1']],
    ['run --name= a img', 'name', ['a']],
    ['run -m=512m img', 'memory', ['512m']],
    ['run --label=-x img', 'label', ['-x']],
    ['rm -f a b', 'force', ['']],
    ['rm a b -f', 'force', ['']],
    ['--debug ls --format json', 'format', ['json']],
  ])('[MC-13] %s', (words, key, values) => {
    expect(parse(words).options.all(key)).toEqual(values);
  });

  test.each([
    ['run --cpus 0.5 img', "Error: The value '0.5' is invalid for '--cpus <cpus>'"],
    ['run --cpus -1 img', "Error: Missing value for '--cpus <cpus>'"],
    ['run --rm=true img', "Error: The option '--rm' does not take any value, but 'true' was specified."],
    ['run -m512m img', "Error: Unknown option '-m512m'"],
    ['run --nmae a img', "Error: Unknown option '--nmae'. Did you mean '--name'?"],
    ['run', "Error: Missing expected argument '<image>'"],
    ['exec a', "Error: Missing expected argument '<arguments> ...'"],
    ['inspect', "Error: Missing expected argument '<container-ids> ...'"],
    ['start a b', "Error: Unexpected argument 'b'"],
    ['ls a b', "Error: 2 unexpected arguments: 'a', 'b'"],
    ['run img ---x', 'Error: Invalid option: ---x'],
    ['run -=x img', 'Error: Invalid option: -=x'],
    [
      'ls --format xml',
      "Error: The value 'xml' is invalid for '--format <format>'. Please provide one of 'json', 'table', 'yaml' or 'toml'.",
    ],
    ['create --progress none img', "Error: Unknown option '--progress'"],
    ['wait a', "Error: Plugin 'container-wait' not found."],
  ])('[MC-13] %s', (words, first) => {
    expect(refusalOf(words)).toEqual({ code: 64, first });
  });

  const DOCKER_ONLY =
    '--pids-limit --memory-swap --cpu-shares --cpuset-cpus --storage-opt --security-opt --privileged --cgroupns --userns --ipc --hostname --add-host --restart --stop-timeout --pull --log-driver --group-add --device --sysctl --gpus --expose'.split(
      ' ',
    );
  test.each(DOCKER_ONLY)('[MC-13] run %s is of docker, and not known', (option) => {
    expect(refusalOf(`run ${option} x img`)).toMatchObject({
      code: 64,
      first: expect.stringContaining(`Unknown option '${option}'`) as string,
    });
  });

  test.each([
    ['--kernel-arg', '1.1.0', '1.2.0'],
    ['--masked-path', '1.2.0', '1.2.1'],
  ])('[MC-13] %s is unknown to %s and known to %s', (option, before, since) => {
    expect(refusalOf(`run ${option} x img`, before).code).toBe(64);
    expect(parse(`run ${option} x img`, since).positionals).toEqual(['img']);
  });
});

describe('what is passed through', () => {
  test('[MC-13] begins with the first word that is no option, and is not read', () => {
    expect(parse('run --rm img sh --rm -e x --help').positionals).toEqual([
      'img',
      'sh',
      '--rm',
      '-e',
      'x',
      '--help',
    ]);
    expect(parse('run --rm img sh --name x').options.has('name')).toBe(false);
  });

  test('[MC-13] a double dash before it vanishes, one after it does not', () => {
    expect(parse('exec -- a ---x').positionals).toEqual(['a', '---x']);
    expect(parse('exec a -- ls').positionals).toEqual(['a', '--', 'ls']);
  });
});

describe('JSON', () => {
  const value = [{ b: '/x', a: [], c: { d: 1 } }];

  test('[MC-13] has sorted keys, and slashes as each version writes them', () => {
    expect(toCompactJson(value, '1.2.2')).toBe(String.raw`[{"a":[],"b":"\/x","c":{"d":1}}]`);
    expect(toCompactJson(value, '1.4.1')).toBe('[{"a":[],"b":"/x","c":{"d":1}}]');
  });

  test('[MC-13] for people is that of Foundation, and JSON all the same', () => {
    const pretty = toPrettyJson(value, '1.2.2');
    expect(pretty).toContain('"a" : [\n\n    ]');
    expect(JSON.parse(pretty)).toEqual(value);
  });
});
