/**
 * The commands of Apple's `container`, as data. An option is its names, `=` if it has a value, the kind of the value, and
 * `*` if it may be given several times; `@` takes over a group; `since:` is the first version that has it.
 */
const PROCESS = [
  '-e --env=*',
  '--env-file=*',
  '--gid=u32',
  '-i --interactive',
  '-t --tty',
  '-u --user=',
  '--uid=u32',
  '-w --workdir --cwd=',
  '--ulimit=*',
];
const RESOURCE = ['-c --cpus=i64', '-m --memory='];
const DNS = ['--dns=*', '--dns-domain=', '--dns-option=*', '--dns-search=*'];
const MANAGEMENT = [
  '-a --arch=',
  '--cap-add=*',
  '--cap-drop=*',
  '--cidfile=',
  '-d --detach',
  ...DNS,
  '--entrypoint=',
  '--init',
  '--init-image=',
  '-k --kernel=',
  '--kernel-arg=* since:1.2.0',
  '-l --label=*',
  '--masked-path=* since:1.2.1',
  '--mount=*',
  '--name=',
  '--network=*',
  '--no-dns',
  '--os=',
  '-p --publish=*',
  '--platform=',
  '--publish-socket=*',
  '--read-only',
  '--read-only-path=* since:1.2.1',
  '--rm --remove',
  '--rosetta',
  '--runtime=',
  '--ssh',
  '--shm-size=',
  '--tmpfs=*',
  '--virtualization',
  '-v --volume=*',
];
const REGISTRY = ['--scheme='];
const PROGRESS = ['--progress={auto,none,ansi,plain,color}'];
const FETCH = ['--max-concurrent-downloads=int'];
const LOG = ['--debug'];
const FORMAT = ['--format={json,table,yaml,toml}'];

export interface CommandGrammar {
  readonly options: readonly string[];
  /** `?` may be left out, `*` and `+` are many; `...` takes the rest as it is. */
  readonly positionals: readonly string[];
}

const command = (options: readonly string[], ...positionals: string[]): CommandGrammar => ({
  options: [...options, ...LOG],
  positionals,
});

/** By all the words of the command; other names for the same are in ALIASES. */
export const COMMANDS: Readonly<Record<string, CommandGrammar>> = {
  run: command(
    [...PROCESS, ...RESOURCE, ...MANAGEMENT, ...REGISTRY, ...PROGRESS, ...FETCH],
    'image',
    '...arguments?',
  ),
  create: command([...PROCESS, ...RESOURCE, ...MANAGEMENT, ...REGISTRY, ...FETCH], 'image', '...arguments?'),
  exec: command([...PROCESS, '-d --detach'], 'container-id', '...arguments+'),
  start: command(['-a --attach', '-i --interactive'], 'container-id'),
  stop: command(['-a --all', '-s --signal=', '-t --time=i32'], 'container-ids*'),
  kill: command(['-a --all', '-s --signal='], 'container-ids*'),
  delete: command(['-a --all', '-f --force'], 'container-ids*'),
  list: command(['-a --all', ...FORMAT, '-q --quiet']),
  inspect: command([], 'container-ids+'),
  logs: command(['--boot', '-f --follow', '-n=int'], 'container-id'),
  stats: command([...FORMAT, '--no-stream'], 'containers*'),
  build: command(
    [
      '-a --arch=*',
      '--build-arg=*',
      '--cache-in=*',
      '--cache-out=*',
      '-c --cpus=i64',
      ...DNS,
      '-f --file=',
      '-l --label=*',
      '-m --memory=',
      '--no-cache',
      '-o --output=*',
      '--os=*',
      '--platform=*',
      '--progress={auto,plain,tty}',
      '-q --quiet',
      '--secret=*',
      '--ssh= since:1.2.1',
      '-t --tag=*',
      '--target=',
      '--vsock-port=u32',
      '--pull',
    ],
    'context-dir?',
  ),
  'image list': command([...FORMAT, '-q --quiet', '-v --verbose']),
  'image inspect': command([], 'images+'),
  'image pull': command(
    [...REGISTRY, ...PROGRESS, ...FETCH, '-a --arch=', '--os=', '--platform='],
    'reference',
  ),
  'image delete': command(['-a --all', '-f --force'], 'images*'),
  'system start': command([
    '-a --app-root=',
    '--install-root=',
    '--log-root=',
    '--enable-kernel-install',
    '--disable-kernel-install',
    '--timeout=double',
  ]),
  'system status': command(['-p --prefix=', ...FORMAT]),
  'system stop': command(['-p --prefix=']),
  'system version': command([...FORMAT]),
};

export const ALIASES: Readonly<Record<string, string>> = {
  rm: 'delete',
  ls: 'list',
  i: 'image',
  s: 'system',
};

/** Words that need another one after them. */
export const GROUPS: ReadonlySet<string> = new Set(['image', 'system']);

export interface OptionGrammar {
  readonly names: readonly string[];
  /** Undefined for a flag. */
  readonly kind: string | undefined;
  readonly repeats: boolean;
  readonly since: string | undefined;
}

export function readOption(text: string): OptionGrammar {
  const [words = '', since] = text.split(' since:');
  const repeats = words.endsWith('*');
  const [names = '', kind] = (repeats ? words.slice(0, -1) : words).split('=');
  return { names: names.split(' '), kind, repeats, since };
}

/** The long name, by which values are found. */
export function keyOf({ names }: OptionGrammar): string {
  return (names.find((name) => name.startsWith('--')) ?? names[0] ?? '').replace(/^-+/, '');
}
