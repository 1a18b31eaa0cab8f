import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { chmod, mkdir, rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { CellImage } from '../../core/cell.ts';
import { HotcellError, toHotcellError } from '../../core/errors.ts';
import type { BuiltImage, ImageShelf } from '../../drivers/images/image-shelf.ts';
import { driversWith, workerDrivers } from '../../drivers/registry.ts';
import { WORKER_IMAGE, toBuiltTag } from '../../drivers/images/recipe.ts';
import type { OnProgress } from '../../drivers/images/shared-pulls.ts';
import { BASE_LABEL } from '../../drivers/images/stored-image.ts';
import { runCommand } from '../../drivers/process/run-command.ts';
import { AGENT_PROGRAM, fetchAgent, resolveAgentVersion, toAgentPlatform } from './agent-package.ts';
import type { Config } from '../config/config.ts';
import { openImages } from '../drivers/make-drivers.ts';
import { dataFolder } from '../open-packages.ts';

/** For `CellSpec.image` of workers. */
export const WORKER_CELL_IMAGE: CellImage = { name: undefined, recipe: WORKER_IMAGE };
export const WORKER_TAG = toBuiltTag(WORKER_IMAGE);

/** On the image, from its Dockerfile. */
const AGENT_LABEL = 'mahabharatha.agent.version';
/** Where cells without an image see the folder of the agent; in the image it is there by itself. */
export const AGENT_AT = '/opt/mahabharatha/agent';

export interface WorkerImageOptions {
  readonly onProgress: OnProgress;
  readonly base?: string | undefined;
  readonly platform?: string | undefined;
  readonly agentVersion?: string | undefined;
  /** Builds it even if it is there as it should be. */
  readonly rebuild?: boolean | undefined;
}

export interface WorkerImage extends BuiltImage {
  readonly agentVersion: string;
  /** It was there, and nothing had to be done. */
  readonly wasThere: boolean;
}

/** Of the driver that makes workers from images, unless the one that was asked for has images and makes none. */
async function openStore(config: Config): Promise<ImageShelf> {
  const makers = workerDrivers();
  const withImages = driversWith(({ images }) => images);
  const isUnfit =
    withImages.some((name) => name === config.driver) && !makers.some((name) => name === config.driver);
  const [maker] = makers.filter((name) => withImages.includes(name));
  if (maker !== undefined && !isUnfit) return openImages(maker, config);
  throw new HotcellError(
    'DRIVER_UNAVAILABLE',
    `workers are made by the drivers ${makers.join(' and ')}, not by ${config.driver}`,
    { hint: `Name another: --driver ${maker ?? makers[0] ?? 'none'}` },
  );
}

export interface FoundWorkerImage {
  readonly present: boolean;
  readonly image: string;
  readonly agentVersion?: string;
  /** It was built from another version of its recipe. */
  readonly outdated: boolean;
  /** Why nobody can tell: the engine does not answer. */
  readonly problem?: string;
}

/** Never fails: an engine that is not there does not have the image. */
export async function findWorkerImage(config: Config): Promise<FoundWorkerImage> {
  const image = WORKER_TAG;
  try {
    const entry = await (await openStore(config)).describe(image);
    const version = entry.stored?.labels[AGENT_LABEL];
    return {
      present: entry.stored !== undefined,
      image,
      outdated: entry.outdated,
      ...(version === undefined ? {} : { agentVersion: version }),
    };
  } catch (error) {
    return { present: false, image, outdated: false, problem: toHotcellError(error).message };
  }
}

/** Builds the image where it is missing or outdated; an outdated one from the base that it has. */
export async function ensureWorkerImage(
  config: Config,
  { onProgress }: { readonly onProgress: OnProgress },
): Promise<void> {
  const { stored, outdated } = await (await openStore(config)).describe(WORKER_TAG);
  if (stored !== undefined && !outdated) return;
  onProgress(
    stored === undefined ? `building ${WORKER_TAG}, once` : `${WORKER_TAG} is outdated, building it again`,
  );
  await buildWorkerImage(config, { onProgress, base: stored?.labels[BASE_LABEL] });
}

/** Builds what was asked for, unless that is what is there. */
export async function buildWorkerImage(config: Config, options: WorkerImageOptions): Promise<WorkerImage> {
  const { base, platform, onProgress } = options;
  const store = await openStore(config);
  const version = await resolveAgentVersion(options.agentVersion);
  const order = { name: WORKER_IMAGE, base, platform } as const;
  const current = options.rebuild === true ? undefined : await store.findCurrent(order);
  if (current?.labels[AGENT_LABEL] === version) return { ...current, agentVersion: version, wasThere: true };
  await using fetched = new AsyncDisposableStack();
  const built = await store.build(
    {
      ...order,
      addition: async (wanted) => {
        const archive = await fetchAgent({ platform: toAgentPlatform(wanted), version, onProgress });
        fetched.use(archive);
        return { name: 'agent.tgz', path: archive.path, buildArgs: { AGENT_VERSION: version } };
      },
    },
    onProgress,
  );
  return { ...built, agentVersion: version, wasThere: false };
}

export interface AgentFolder {
  /** On the host; cells see it at `AGENT_AT`. */
  readonly folder: string;
  /** The program, as a cell sees it. */
  readonly bin: string;
  readonly version: string;
}

/** The agent for cells without an image: the one that was installed last. */
export function findAgentFolder(): AgentFolder | undefined {
  const parent = agentsFolder();
  const suffix = `-${hostPlatform()}`;
  const names = existsSync(parent) ? readdirSync(parent).filter((name) => name.endsWith(suffix)) : [];
  const found = names
    .map((name) => ({ name, folder: join(parent, name) }))
    .filter(({ name, folder }) => /^\d/.test(name) && existsSync(join(folder, AGENT_PROGRAM)))
    .toSorted((left, right) => statSync(right.folder).mtimeMs - statSync(left.folder).mtimeMs);
  const [{ name, folder } = { name: '', folder: '' }] = found;
  return name === '' ? undefined : toAgentFolder(folder, name.slice(0, -suffix.length));
}

export interface AgentInstallation extends AgentFolder {
  readonly wasThere: boolean;
}

/** Appears whole or not at all, so that cells of others never see half of it. */
export async function installAgentFolder(
  onProgress: OnProgress,
  wanted?: string,
): Promise<AgentInstallation> {
  const platform = hostPlatform();
  const version = await resolveAgentVersion(wanted);
  const folder = join(agentsFolder(), `${version}-${platform}`);
  const wasThere = existsSync(join(folder, AGENT_PROGRAM));
  if (!wasThere) await unpackAgent(folder, { platform, version, onProgress });
  // The last one that was asked for is the one that is used.
  await utimes(folder, new Date(), new Date());
  return { ...toAgentFolder(folder, version), wasThere };
}

async function unpackAgent(
  folder: string,
  wish: { readonly platform: string; readonly version: string; readonly onProgress: OnProgress },
): Promise<void> {
  await mkdir(agentsFolder(), { recursive: true });
  await using archive = await fetchAgent(wish);
  const partial = join(agentsFolder(), `.partial-${randomBytes(6).toString('hex')}`);
  try {
    await mkdir(partial);
    wish.onProgress(`unpacking it into ${folder}`);
    const { code, stderr } = await runCommand([
      'tar',
      '-xzf',
      archive.path,
      '-C',
      partial,
      '--no-same-owner',
    ]);
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

function agentsFolder(): string {
  return join(dataFolder(), 'agents/claude-code');
}

const GLIBC_LOADERS = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'];

/** Cells without an image see the libraries of this machine. */
function hostPlatform(): string {
  const isGlibc = GLIBC_LOADERS.some((file) => existsSync(file));
  return toAgentPlatform(process.arch, isGlibc ? 'glibc' : 'musl');
}
