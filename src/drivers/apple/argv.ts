import type { CellSpec } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { GUEST_IN_CELL, WORKDIR_IN_CELL } from '../linux/cell-paths.ts';
import type { Labels } from '../engine/owner-labels.ts';
import { toMemoryMiB, toWholeCpus } from './grants.ts';
import { toLabelWords } from './labels.ts';

/** The words of a call. Everything that is ever asked of the CLI is in this file. */
export type Words = readonly [string, ...string[]];

export const VERSION: Words = ['--version'];
export const STATUS: Words = ['system', 'status', '--format', 'json'];
export const LIST: Words = ['list', '--all', '--format', 'json'];

export const toImageInspect = (image: string): Words => ['image', 'inspect', image];
export const toImagePull = (image: string): Words => ['image', 'pull', '--progress', 'plain', image];
export const toStats = (id: string): Words => ['stats', '--format', 'json', '--no-stream', id];
/** SECURITY: one container by its name. There is no call of ours with --all: others have containers, too. */
export const toDelete = (id: string): Words => ['delete', '--force', id];

export interface ImageBuild {
  readonly tag: string;
  /** Absolute and free of links: below one the CLI finds nothing to copy. */
  readonly context: string;
  readonly file: string;
  readonly base: string;
  readonly labels: Labels;
  readonly platform: string | undefined;
}

export function toBuild(build: ImageBuild): Words {
  return [
    'build',
    '--progress',
    'plain',
    '--file',
    build.file,
    '--build-arg',
    `BASE=${build.base}`,
    ...toLabelWords(build.labels),
    ...(build.platform === undefined ? [] : ['--platform', build.platform]),
    '--tag',
    build.tag,
    build.context,
  ];
}

export interface RunInput {
  readonly id: string;
  readonly spec: CellSpec;
  readonly image: string;
  readonly labels: Labels;
  /** Folder of the host with the guest files. */
  readonly guest: string;
}

const MiB = 1024 * 1024;
/** Semaphores and small buffers of the C library live there. It counts as memory, like /tmp. */
const SHM = '16m';
/** Of the virtual machine, which has no other users. */
const USER = '1000:1000';

/**
 * A cell: the agent is the first process of the container, attached to this one call for all of its life. In the
 * foreground, because its input ends with ours, and with `--rm` the container with its input, also after kill -9.
 */
export function toRunWords({ id, spec, image, labels, guest }: RunInput): Words {
  const { limits, folders = [] } = spec;
  return [
    'run',
    '--interactive',
    '--rm',
    // Otherwise it goes into stderr, between the words of the agent.
    '--progress',
    'none',
    '--name',
    id,
    ...toLabelWords(labels),
    '--cpus',
    String(toWholeCpus(limits.cpus)),
    '--memory',
    `${toMemoryMiB(limits.memoryBytes)}m`,
    '--network',
    'none',
    '--no-dns',
    '--read-only',
    '--cap-drop',
    'ALL',
    '--user',
    USER,
    '--ulimit',
    `nproc=${limits.processes}:${limits.processes}`,
    '--ulimit',
    `nofile=${limits.openFiles}:${limits.openFiles}`,
    '--ulimit',
    'core=0:0',
    '--shm-size',
    SHM,
    '--mount',
    `type=tmpfs,target=${WORKDIR_IN_CELL},size=${Math.floor(limits.diskBytes / MiB)}m,mode=1777`,
    ...toReadOnlyFolder(guest, GUEST_IN_CELL),
    ...folders.flatMap(({ folder, at }) => toReadOnlyFolder(folder, at)),
    '--env',
    `HOME=${WORKDIR_IN_CELL}`,
    '--env',
    'LANG=C.UTF-8',
    '--workdir',
    WORKDIR_IN_CELL,
    // Whatever the image would start instead.
    '--entrypoint',
    'perl',
    image,
    `${GUEST_IN_CELL}/agent.pl`,
  ];
}

/** The form of `--volume` parts its words by colons, that of `--mount` by commas and equal signs. */
function toReadOnlyFolder(source: string, target: string): string[] {
  if (!source.includes(':')) return ['--volume', `${source}:${target}:ro`];
  if (/[,=]/.test(source)) {
    throw new HotcellError('CONFIG_INVALID', `the path ${source} cannot be shown to a cell of this driver`, {
      hint: 'Use a folder without a colon in its path.',
    });
  }
  return ['--mount', `type=virtiofs,source=${source},target=${target},readonly`];
}
