import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import type { CellFolder, CellOwner } from '../../core/cell.ts';
import { PROMISES } from '../../core/enforcement.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { UnusedIds } from '../../drivers/linux/unused-ids.ts';
import { driversWith, kindOf, plainDriver, workerDrivers, type DriverName } from '../../drivers/registry.ts';
import { networkOpener } from '../../egress/open-network.ts';
import { AGENT_AT, findAgentFolder, installAgentFolder } from '../../fleet/agent/agent-folder.ts';
import { pinnedAgent } from '../../fleet/agent/agent-package.ts';
import { chooseMode, type Candidate } from '../../fleet/choose-mode.ts';
import type { FleetConfig } from '../../fleet/fleet-config.ts';
import type { FleetWish } from '../../fleet/fleet-machine.ts';
import { PLAIN_MODE, type FleetSite } from '../../fleet/fleet-site.ts';
import { chooseDriver } from '../drivers/choose-driver.ts';
import type { Config } from '../config/config.ts';
import { findMaker } from './find-maker.ts';
import { WORKER_CELL_IMAGE, agentShelf, ensureWorkerImage, findWorkerImage } from './fleet-image.ts';
import { openMachineGate, readCaBundle } from '../machine-gate.ts';
import { SYSTEM_CLOCK } from '../system-clock.ts';
import { SILENT_HOOKS, bundledTools, makeDriver, type DriverHooks } from '../drivers/make-drivers.ts';
import { requireWorkerDriver } from '../drivers/driver-choices.ts';

const HOW_TO_ALLOW = 'network.allow in .mahabharatha/config.yaml lists the hosts that workers may reach.';
/** Where a cell without an image looks for programs; they are those of this machine. */
const PROGRAM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin'];

/** The driver and everything else that workers are made of. Says what it chose and why; makes nothing yet. */
export async function openFleetSite(
  config: Config,
  fleet: FleetConfig,
  wish: FleetWish,
  hooks: DriverHooks,
): Promise<FleetSite> {
  // Folders and files for the cells' users must not depend on what our caller had as umask.
  process.umask(0o022);
  const asked = requireWorkerDriver(wish.driver);
  if (wish.autoBuild && wish.mode !== PLAIN_MODE) await buildMissing(config, fleet, asked, hooks);
  const chosen = await chooseMode({
    mode: wish.mode,
    driver: asked,
    drivers: { walled: workerDrivers(), plain: plainDriver() },
    look: (driver) => lookAt(driver, config, fleet),
  });
  const isCells = chosen.mode === 'container';
  // Whoever takes plain processes gives up every promise by name: `status` and the start say so.
  const weaker = isCells ? config.weaker : [...PROMISES];
  const { driver, probe } = await chooseDriver({ ...config, driver: chosen.driver, weaker }, hooks);
  const { images } = driver.traits;
  const { log } = hooks;
  const gate = openMachineGate(config, log);
  const ids = new UnusedIds();
  const agent = isCells && !images ? findAgentFolder(agentShelf()) : undefined;
  return {
    ...chosen,
    driver,
    runtime: probe.runtime,
    image: images ? WORKER_CELL_IMAGE : undefined,
    agentFolders: agent === undefined ? [] : [toAgentMount(agent.folder)],
    toAgentProgram: (command) => (command === 'claude' && agent !== undefined ? agent.bin : command),
    agentVersions: {
      tried: pinnedAgent(agentShelf()).version,
      inCells: images ? (await findWorkerImage(config)).agentVersion : agent?.version,
    },
    tools: bundledTools().map(({ name }) => name),
    nextOwner: () => (isCells ? nextOwner(ids) : undefined),
    openNetwork: isCells
      ? networkOpener(driver.traits.confines, {
          gate: () => gate.get(),
          clock: SYSTEM_CLOCK,
          log,
          howToAllow: HOW_TO_ALLOW,
        })
      : undefined,
    whyNotReached: isCells ? async (allow, url) => (await gate.get()).whyNot(allow, url) : undefined,
    caBundle: isCells ? await readCaBundle() : undefined,
    log,
    reclaim: () => driver.reclaim(),
    close: async () => {
      await driver.close();
      await gate.close();
    },
  };
}

/** What cells of the driver lack of the agent. Where none can be made there is nothing to build, and the choice says why. */
async function buildMissing(
  config: Config,
  fleet: FleetConfig,
  asked: DriverName | 'auto',
  hooks: DriverHooks,
): Promise<void> {
  const { driver } = await findMaker(config, { driver: asked });
  if (driver === undefined) return;
  const onProgress = (text: string): void => hooks.onProgress(text);
  if (kindOf(driver).traits.images) await ensureWorkerImage(config, { onProgress });
  else if ((await whyNoAgent(fleet.agent.command, driver)) !== undefined && fleet.agent.command === 'claude')
    await installAgentFolder(agentShelf(), onProgress);
}

function toAgentMount(folder: string): CellFolder {
  return { name: 'agent', folder, at: AGENT_AT };
}

/** Whoever we are; but for root, which no worker ever is: then somebody who has nothing on this machine. */
function nextOwner(ids: UnusedIds): CellOwner {
  const uid = process.geteuid?.() ?? 0;
  const gid = process.getegid?.() ?? 0;
  if (uid !== 0) return { uid, gid };
  const unused = ids.next();
  return { uid: unused, gid: unused };
}

/** Can cells be made, and is the agent in them? */
async function lookAt(driver: DriverName, config: Config, fleet: FleetConfig): Promise<Candidate> {
  try {
    const { probe } = await chooseDriver({ ...config, driver }, SILENT_HOOKS);
    const missing = kindOf(driver).traits.images
      ? await whyNoImage(config)
      : await whyNoAgent(fleet.agent.command, driver);
    return missing ?? { ok: true, runtime: probe.runtime };
  } catch (error) {
    if (!(error instanceof HotcellError)) throw error;
    return { ok: false, problem: error.message, remedy: error.hint };
  }
}

async function whyNoImage(config: Config): Promise<Candidate | undefined> {
  const { present, image, problem } = await findWorkerImage(config);
  if (present) return undefined;
  return {
    ok: false,
    problem: problem ?? `the engine has no image ${image}`,
    remedy: 'Build it with hotcell fleet build, or let run do it with --auto-build.',
  };
}

/** A program of the repository is where the repository is; others must be where the cell can see them. */
async function whyNoAgent(command: string, driver: DriverName): Promise<Candidate | undefined> {
  if (command.includes('/') || bundledTools().some(({ name }) => name === command)) return undefined;
  if (command === 'claude' && findAgentFolder(agentShelf()) !== undefined) return undefined;
  for (const folder of PROGRAM_FOLDERS) if (await canRun(join(folder, command))) return undefined;
  return {
    ok: false,
    problem: `cells of the ${driver} driver would have no program ${command}`,
    remedy:
      command === 'claude'
        ? `Install it for cells with hotcell fleet build --driver ${driver}.`
        : `Install it below /usr, or name one of the repository (agent.command).`,
  };
}

async function canRun(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Removes what fleets left behind whose orchestrator is dead, whatever made their cells. Returns the ids of the cells. */
export async function reclaimFleetCells(config: Config, log: Log): Promise<string[]> {
  const removed: string[] = [];
  for (const name of driversWith(({ workers }) => workers)) {
    try {
      removed.push(...(await (await makeDriver(name, config, { log, onProgress: () => {} })).reclaim()));
    } catch (error) {
      // An engine that is not there has no cells of ours.
      log.debug({ driver: name, error: messageOf(error) }, 'cell reclaim failed');
    }
  }
  return removed;
}
