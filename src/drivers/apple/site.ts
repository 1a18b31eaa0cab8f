import { randomBytes } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import type { Isolation } from '../../core/cell.ts';
import { requireEnforcement } from '../../core/enforcement.ts';
import type { Labels } from '../engine/owner-labels.ts';
import type { DriverSurroundings } from '../kind.ts';
import { requireHost } from '../probed.ts';
import { STATUS } from './argv.ts';
import type { ContainerCli } from './cli.ts';
import { AppleImages } from './images.ts';
import { toAppleLabels } from './labels.ts';
import { probeApple } from './probe.ts';
import { ServicesWatch } from './services-watch.ts';
import { parseStatus } from './shapes.ts';

export interface AppleOptions extends Omit<DriverSurroundings, 'stateDirectory' | 'tools' | 'variables'> {
  /** The `container` command; undefined for the one of the system, on macOS only. */
  readonly cli: string | undefined;
}

/** What all cells of one process share. */
export interface AppleSite {
  readonly instance: string;
  readonly cli: ContainerCli;
  readonly labels: Labels;
  readonly images: AppleImages;
  readonly isolation: Isolation;
  readonly watch: ServicesWatch;
  /** By its real name: what is mounted is a folder, not what a link leads to at the moment. */
  readonly guest: string;
}

export async function openSite(options: AppleOptions, onUp: () => void): Promise<AppleSite> {
  const { probe, host: cli } = requireHost(await probeApple(options));
  requireEnforcement(probe.enforcement, options.weaker);
  const instance = randomBytes(6).toString('hex');
  const isUp = async (): Promise<boolean> =>
    parseStatus((await cli.ask('tell its status', STATUS)).stdout) === 'running';
  return {
    instance,
    cli,
    labels: await toAppleLabels(instance),
    images: new AppleImages(cli, options),
    isolation: { driver: 'apple', runtime: probe.runtime, enforcement: probe.enforcement },
    watch: new ServicesWatch(isUp, onUp),
    guest: await realpath(options.guest),
  };
}
