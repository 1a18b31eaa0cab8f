import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, realpathSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import { EngineApi } from './engine-api.ts';
import { findDebianSource } from './debian-source.ts';
import { findProgram } from './find-program.ts';

/** Debian with every interpreter, for the engine of the tests: what people would pull, made here from packages. */
export const BASE_IMAGE = 'hotcell-test-base:latest';

const RECIPE_LABEL = 'hotcell.test.recipe';
const LAST_WORDS = 4000;
const SCRATCH_BYTES = 1024 ** 3;

/**
 * What comes besides apt and what Debian calls essential. Node needs a library for C++. With `usr-is-merged` the
 * package usrmerge stays out, and with it all of Perl but its base.
 */
const PACKAGES = [
  'git',
  'libstdc++6',
  'procps',
  'python3',
  'python3-pip',
  'python3-venv',
  'ruby',
  'usr-is-merged',
];

/** Below /usr/share: what no program reads. */
const LEFT_OUT = ['bug', 'doc', 'info', 'lintian', 'locale', 'man'];

/** Fails the making of an image in which something does not start. */
const TRIAL = [
  'set -e',
  // Node would keep compiled code where this machine does, and so a folder of this machine would be in the image.
  'unset NODE_COMPILE_CACHE',
  'perl -MSocket -MPOSIX -MIO::Handle -e 1',
  "python3 -c 'import ctypes, hashlib, json, sqlite3, ssl, unittest, urllib.request'",
  "ruby -rjson -rsocket -ropenssl -rset -e ''",
  'bash -c true',
  'setsid true',
  'unshare --help',
  'ps --version',
  'echo | head -c 1 | wc -c | od -c',
  'env true',
  'npm --version',
  'pip3 --version',
  'git --version',
].join('\n');

/** Why the image cannot be made here, or undefined. */
export function whyNoBaseImage(): string | undefined {
  return findProgram('mmdebstrap') === undefined
    ? 'mmdebstrap is not installed (apt-get install mmdebstrap)'
    : undefined;
}

/** Makes the image unless the engine has it already, and says its name. It takes half a minute on an idle machine. */
export async function ensureBaseImage(socket: string): Promise<string> {
  const engine = new EngineApi(socket);
  try {
    const recipe = hashRecipe();
    if ((await baseImageRecipe(engine)) === recipe) return BASE_IMAGE;
    process.stderr.write(`making the image ${BASE_IMAGE} from Debian packages, once\n`);
    const changes = [`LABEL ${RECIPE_LABEL}=${recipe}`, 'CMD ["bash"]'];
    await engine.importImage(BASE_IMAGE.replace(':latest', ''), makeArchive(), changes);
    return BASE_IMAGE;
  } finally {
    engine.close();
  }
}

/** What the image at hand was made from; undefined if there is none. */
export async function baseImageRecipe(engine: EngineApi): Promise<string | undefined> {
  type Image = { Config: { Labels: Record<string, string> | null } };
  const image = await engine.call<Image>('GET', `/images/${BASE_IMAGE}/json`).catch(() => undefined);
  return image?.Config.Labels?.[RECIPE_LABEL];
}

/** Everything that the content depends on, but not where it comes from. */
function hashRecipe(): string {
  const versions = bundledTools().map(({ path }) => execFileSync(path, ['--version']).toString());
  versions.push(readFileSync(join(npmFolder(), 'package.json'), 'utf8'));
  const parts = [toArguments(), TRIAL, suite(), process.arch, versions];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
}

function npmFolder(): string {
  const program = findProgram('npm');
  if (program === undefined) throw new Error('there is no npm to put into the image');
  return dirname(dirname(realpathSync(program)));
}

/** The release of this machine: its packages are known to be within reach. */
function suite(): string {
  const found = /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  if (found === undefined) throw new Error('/etc/os-release names no VERSION_CODENAME');
  return found;
}

/** Paths come as variables, so that no shell has to understand them. */
function toArguments(): string[] {
  const tools = bundledTools();
  return [
    '--variant=apt',
    `--include=${PACKAGES.join(',')}`,
    '--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr',
    ...LEFT_OUT.map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`),
    ...tools.map(({ name }) => `--customize-hook=install -m 755 "$TOOL_${name}" "$1/usr/local/bin/${name}"`),
    ...tools.map(({ name }) => `--customize-hook=chroot "$1" ${name} --version`),
    // The one of this machine: Debian's own npm is hundreds of packages.
    '--customize-hook=mkdir -p "$1/usr/local/lib/node_modules" && cp -a "$NPM" "$1/usr/local/lib/node_modules/npm"',
    '--customize-hook=ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"',
    '--customize-hook=chroot "$1" sh -c "$TRIAL"',
  ];
}

/** The whole root file system, as it is being made. mmdebstrap heeds the machine's settings of apt, proxies too. */
function makeArchive(): Readable {
  const paths = Object.fromEntries(bundledTools().map(({ name, path }) => [`TOOL_${name}`, path]));
  const args = ['--quiet', ...toArguments(), suite(), '-', findDebianSource(suite())];
  const child = spawn('mmdebstrap', args, {
    env: { ...process.env, ...paths, TRIAL, NPM: npmFolder(), TMPDIR: scratchFolder() },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let words = '';
  child.stderr.on('data', (chunk: Buffer) => (words = (words + chunk.toString()).slice(-LAST_WORDS)));
  const archive = new PassThrough();
  child.stdout.pipe(archive, { end: false });
  child.on('error', (error) => archive.destroy(error));
  child.on('close', (code) => {
    // Only a whole archive gets an end: an engine takes half of one, or nothing, for an image too.
    if (code === 0) archive.end();
    else archive.destroy(new Error(`mmdebstrap failed with ${code}: ${words.trim()}`));
  });
  return archive;
}

/** In memory where there is room: packages are unpacked in thousands of small writes. */
function scratchFolder(): string {
  const folder = '/dev/shm';
  const mounted = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .findLast((line) => line.split(' ')[1] === folder);
  if (mounted === undefined || mounted.includes('noexec')) return tmpdir();
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize > SCRATCH_BYTES ? folder : tmpdir();
}
