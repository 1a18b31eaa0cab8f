import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { chmod, mkdir, rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import {
  AGENT_PROGRAM,
  fetchAgent,
  resolveAgentVersion,
  type AgentSource,
  type AgentWish,
} from './agent-package.ts';

/** Where cells without an image see the folder of the agent; in the image it is there by itself. */
export const AGENT_AT = '/opt/mahabharatha/agent';

/** Where agents for cells without an image are kept, and for what they are made. */
export interface AgentShelf extends AgentSource {
  readonly folder: string;
  /** In the words of npm. */
  readonly platform: string;
  /** Runs a program of this machine to its end. */
  run(argv: readonly [string, ...string[]]): Promise<{ readonly code: number; readonly stderr: string }>;
}

export interface AgentFolder {
  /** On the host; cells see it at `AGENT_AT`. */
  readonly folder: string;
  /** The program, as a cell sees it. */
  readonly bin: string;
  readonly version: string;
}

/** The agent for cells without an image: the one that was installed last. */
export function findAgentFolder({ folder: parent, platform }: AgentShelf): AgentFolder | undefined {
  const suffix = `-${platform}`;
  const names = existsSync(parent) ? readdirSync(parent).filter((name) => name.endsWith(suffix)) : [];
  const found = names
    .map((name) => ({ name, folder: join(parent, name) }))
    .filter(({ name, folder }) => /^\d/.test(name) && existsSync(join(folder, AGENT_PROGRAM)))
    .toSorted((left, right) => statSync(right.folder).mtimeMs - statSync(left.folder).mtimeMs);
  const [{ name, folder } = { name: '', folder: '' }] = found;
  return name === '' ? undefined : toAgentFolder(folder, name.slice(0, -suffix.length));
}

interface AgentInstallation extends AgentFolder {
  readonly wasThere: boolean;
}

/** Appears whole or not at all, so that cells of others never see half of it. */
export async function installAgentFolder(
  shelf: AgentShelf,
  onProgress: (text: string) => void,
  wanted?: string,
): Promise<AgentInstallation> {
  const version = await resolveAgentVersion(shelf, wanted);
  const folder = join(shelf.folder, `${version}-${shelf.platform}`);
  const wasThere = existsSync(join(folder, AGENT_PROGRAM));
  if (!wasThere) await unpackAgent(folder, shelf, { platform: shelf.platform, version, onProgress });
  // The last one that was asked for is the one that is used.
  await utimes(folder, new Date(), new Date());
  return { ...toAgentFolder(folder, version), wasThere };
}

async function unpackAgent(folder: string, shelf: AgentShelf, wish: AgentWish): Promise<void> {
  await mkdir(shelf.folder, { recursive: true });
  await using archive = await fetchAgent(shelf, wish);
  const partial = join(shelf.folder, `.partial-${randomBytes(6).toString('hex')}`);
  try {
    await mkdir(partial);
    wish.onProgress(`unpacking it into ${folder}`);
    const { code, stderr } = await shelf.run(['tar', '-xzf', archive.path, '-C', partial, '--no-same-owner']);
    if (code !== 0) throw new HotcellError('PACKAGE_UNAVAILABLE', `tar failed: ${stderr.trim()}`);
    // Cells have users of their own, whatever the umask of this one is.
    for (const path of ['.', 'package', AGENT_PROGRAM]) await chmod(join(partial, path), 0o755);
    await rename(partial, folder);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    // Somebody else was faster.
    if (!existsSync(join(folder, AGENT_PROGRAM))) throw error;
  }
}

function toAgentFolder(folder: string, version: string): AgentFolder {
  return { folder, bin: `${AGENT_AT}/${AGENT_PROGRAM}`, version };
}
