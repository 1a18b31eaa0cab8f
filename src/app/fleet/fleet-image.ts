import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CellImage } from '../../core/cell.ts';
import { HotcellError, toHotcellError } from '../../core/errors.ts';
import type { BuiltImage, ImageShelf } from '../../drivers/images/image-shelf.ts';
import { driversWith, workerDrivers } from '../../drivers/registry.ts';
import { WORKER_IMAGE, toBuiltTag } from '../../drivers/images/recipe.ts';
import type { OnProgress } from '../../drivers/images/shared-pulls.ts';
import { BASE_LABEL } from '../../drivers/images/stored-image.ts';
import { runCommand } from '../../drivers/process/run-command.ts';
import type { AgentShelf } from '../../fleet/agent/agent-folder.ts';
import {
  fetchAgent,
  resolveAgentVersion,
  toAgentPlatform,
  type AgentSource,
} from '../../fleet/agent/agent-package.ts';
import type { Config } from '../config/config.ts';
import { RECIPES, openImages } from '../drivers/make-drivers.ts';
import { dataFolder } from '../open-packages.ts';

/** For `CellSpec.image` of workers. */
export const WORKER_CELL_IMAGE: CellImage = { name: undefined, recipe: WORKER_IMAGE };
export const WORKER_TAG = toBuiltTag(WORKER_IMAGE);

/** On the image, from its Dockerfile. */
const AGENT_LABEL = 'mahabharatha.agent.version';

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
  const version = await resolveAgentVersion(agentSource(), options.agentVersion);
  const order = { name: WORKER_IMAGE, base, platform } as const;
  const current = options.rebuild === true ? undefined : await store.findCurrent(order);
  if (current?.labels[AGENT_LABEL] === version) return { ...current, agentVersion: version, wasThere: true };
  await using fetched = new AsyncDisposableStack();
  const built = await store.build(
    {
      ...order,
      addition: async (wanted) => {
        const archive = await fetchAgent(agentSource(), {
          platform: toAgentPlatform(wanted),
          version,
          onProgress,
        });
        fetched.use(archive);
        return { name: 'agent.tgz', path: archive.path, buildArgs: { AGENT_VERSION: version } };
      },
    },
    onProgress,
  );
  return { ...built, agentVersion: version, wasThere: false };
}

function agentSource(): AgentSource {
  return { recipe: join(RECIPES, WORKER_IMAGE), env: process.env };
}

/** Where this machine keeps the agent for cells without an image. */
export function agentShelf(): AgentShelf {
  return {
    ...agentSource(),
    folder: join(dataFolder(), 'agents/claude-code'),
    platform: hostPlatform(),
    run: (argv) => runCommand(argv),
  };
}

const GLIBC_LOADERS = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'];

/** Cells without an image see the libraries of this machine. */
function hostPlatform(): string {
  const isGlibc = GLIBC_LOADERS.some((file) => existsSync(file));
  return toAgentPlatform(process.arch, isGlibc ? 'glibc' : 'musl');
}
