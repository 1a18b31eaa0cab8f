import { createHash } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import * as z from 'zod';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { Environment } from '../fleet-machine.ts';
import { runNpm } from './run-npm.ts';

const Pinned = z.object({
  package: z.string(),
  version: z.string(),
  /** Of the archive for each platform. */
  integrity: z.record(z.string(), z.string()),
});

/** Where the agent comes from. */
export interface AgentSource {
  /** The recipe of the image of workers; its `agent.json` has the pinned version. */
  readonly recipe: string;
  /** For npm, which finds its registry there. */
  readonly env: Environment;
}

/** Claude Code in the version that was tried with this release. */
export function pinnedAgent({ recipe }: Pick<AgentSource, 'recipe'>): z.infer<typeof Pinned> {
  return Pinned.parse(JSON.parse(readFileSync(join(recipe, 'agent.json'), 'utf8')));
}

/** Inside the archive, and therefore below the folder where it is unpacked. */
export const AGENT_PROGRAM = 'package/claude';

const VERSION = /^(?:\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?|[a-z][a-z0-9-]{0,31})$/;
const PROCESSORS: ReadonlyMap<string, string> = new Map([
  ['amd64', 'x64'],
  ['x86_64', 'x64'],
  ['x64', 'x64'],
  ['arm64', 'arm64'],
  ['aarch64', 'arm64'],
]);

/** `linux/arm64/v8`, as images say it, in the words of npm. */
export function toAgentPlatform(platform: string, libc: 'glibc' | 'musl' = 'glibc'): string {
  const [system = '', processor = ''] = platform.includes('/') ? platform.split('/') : ['linux', platform];
  const known = PROCESSORS.get(processor);
  if (system === 'linux' && known !== undefined) return `linux-${known}${libc === 'musl' ? '-musl' : ''}`;
  throw new HotcellError('INVALID_REQUEST', `there is no Claude Code for ${platform}`, {
    hint: 'Take linux/amd64 or linux/arm64.',
  });
}

export interface AgentArchive extends AsyncDisposable {
  /** As the registry has it, with the program at `AGENT_PROGRAM`. */
  readonly path: string;
  readonly version: string;
}

export interface AgentWish {
  readonly platform: string;
  /** A version, or a tag such as `latest`; the pinned one unless given. */
  readonly version?: string | undefined;
  readonly onProgress: (text: string) => void;
}

/** The version that is meant; asks the registry only about tags. */
export async function resolveAgentVersion(source: AgentSource, wanted: string | undefined): Promise<string> {
  const pinned = pinnedAgent(source);
  if (wanted === undefined) return pinned.version;
  if (!VERSION.test(wanted)) {
    throw new HotcellError('INVALID_REQUEST', `${JSON.stringify(wanted)} is no version of the agent`, {
      hint: `Write it as ${pinned.version}, or a tag such as latest.`,
    });
  }
  if (/^\d/.test(wanted)) return wanted;
  const said = await runNpm(['view', `${pinned.package}@${wanted}`, 'version', '--json'], {
    cwd: tmpdir(),
    env: source.env,
  });
  const version = z.string().safeParse(toJson(said)).data;
  if (version !== undefined && VERSION.test(version)) return version;
  throw new HotcellError('PACKAGE_UNAVAILABLE', `npm knows no version ${wanted} of ${pinned.package}`);
}

/**
 * Fetches Claude Code with the npm of this machine, so that its registry, certificates and proxies are heeded, and a build
 * needs none of them. Nothing of the package is run. What was pinned is compared by hash; npm compares what was not.
 */
export async function fetchAgent(
  source: AgentSource,
  { platform, version: wanted, onProgress }: AgentWish,
): Promise<AgentArchive> {
  const pinned = pinnedAgent(source);
  const version = await resolveAgentVersion(source, wanted);
  const name = `${pinned.package}-${platform}`;
  const folder = await mkdtemp(join(tmpdir(), 'mahabharatha-agent-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    onProgress(`fetching ${name} ${version} with npm`);
    await runNpm(['pack', '--ignore-scripts', '--silent', `${name}@${version}`], {
      cwd: folder,
      env: source.env,
    });
    const [file] = (await readdir(folder)).filter((entry) => entry.endsWith('.tgz'));
    if (file === undefined) throw unavailable(`npm has packed ${name} ${version} and left no file`);
    const path = join(folder, file);
    if (version === pinned.version) await compareHash(path, name, pinned.integrity[platform]);
    return { path, version, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** SECURITY: a registry, or who stands in its place, cannot give us another program than the one that was tried. */
async function compareHash(path: string, name: string, wanted: string | undefined): Promise<void> {
  const hash = createHash('sha512');
  await pipeline(createReadStream(path), hash);
  if (`sha512-${hash.digest('base64')}` === wanted) return;
  throw unavailable(`what npm has fetched as ${name} is not what this release was made with`);
}

function unavailable(message: string): HotcellError {
  return new HotcellError('PACKAGE_UNAVAILABLE', message, {
    hint: 'Look at the registry that npm is set to: npm config get registry',
  });
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw unavailable(`npm has answered with something else than JSON: ${messageOf(error)}`);
  }
}
