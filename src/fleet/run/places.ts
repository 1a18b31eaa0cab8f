import { existsSync } from 'node:fs';
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CellOwner } from '../../core/cell.ts';
import { DependencyCache } from '../environment/dependencies.ts';
import { planSetup, readManifests, type SetupPlan } from '../environment/plan-setup.ts';
import { copyIgnoredFiles } from '../environment/worktree-files.ts';
import { findAuthor } from '../git/author.ts';
import { BaseStore } from '../git/base-store.ts';
import { splitNul } from '../git/host-git.ts';
import { LinkedGit } from '../git/linked-git.ts';
import type { PlaceGit, PlaceGitParts } from '../git/place-git.ts';
import { requireCommit } from '../git/refs.ts';
import { SealedGit } from '../git/sealed-git.ts';
import { featureBranch, workerBranch, workerName, workerWorktree } from '../names.ts';
import { findOvergrowth } from '../worker/disk-watch.ts';
import { Place } from '../worker/place.ts';
import type { Room } from '../worktree-volumes.ts';
import type { FleetRun } from './fleet-run.ts';
import { installDependencies } from './install-dependencies.ts';

/** Of the checks: no worker has it. */
const CHECKS = 'gates';
export const CHECKS_NUMBER = 9999;

/** A place before it is opened. */
interface Spot extends Pick<PlaceGitParts, 'worker' | 'branch' | 'worktree'> {
  /** Names what belongs to it on the host. */
  readonly key: string;
  /** Of the cell. */
  readonly name: string;
}

/** Makes and removes the places of a fleet: worktrees with what belongs into them, and cells around them. */
export class FleetPlaces {
  readonly #run: FleetRun;
  readonly #base: BaseStore;
  /** Who the programs of a place are stays the same as long as we live, whatever happens to the cell. */
  readonly #owners = new Map<string, CellOwner | undefined>();
  /** Installations under way, by the key of their plan: the other workers wait for one and copy what it made. */
  readonly #installing = new Map<string, Promise<void>>();
  readonly #failedInstalls = new Set<string>();

  constructor(run: FleetRun) {
    this.#run = run;
    this.#base = new BaseStore(run.git, join(run.paths.cells, 'base.git'));
  }

  async openWorker(worker: number): Promise<Place> {
    const { git, paths } = this.#run;
    return this.#open(this.#worker(worker), await requireCommit(git, featureBranch(paths.feature)));
  }

  /** A new worktree and a new cell, so that no worker has a hand in it. */
  async openChecks(commit: string): Promise<Place> {
    await this.closeChecks();
    return this.#open(this.#checks(), commit);
  }

  async closeChecks(): Promise<void> {
    const checks = this.#checks();
    await this.#remove(checks);
    await this.#run.git.attempt(['update-ref', '-d', `refs/heads/${checks.branch}`]);
  }

  #worker(worker: number): Spot {
    const { paths } = this.#run;
    const branch = workerBranch(paths.feature, worker);
    const worktree = workerWorktree(paths, worker);
    return { key: `worker-${worker}`, name: workerName(worker), worker, branch, worktree };
  }

  #checks(): Spot {
    const { worktrees, feature } = this.#run.paths;
    return {
      key: CHECKS,
      name: `mahabharatha-${CHECKS}-${feature}`.slice(0, 63),
      worker: CHECKS_NUMBER,
      branch: `mahabharatha/${feature}/${CHECKS}`,
      worktree: join(worktrees, CHECKS),
    };
  }

  async #makeGit({ key, worker, branch, worktree }: Spot, start: string, room?: Room): Promise<PlaceGit> {
    const { git, paths, site } = this.#run;
    const author = await findAuthor(git, worker);
    const parts = { worker, branch, worktree, room, start, git, feature: paths.feature, author };
    return site.mode !== 'container'
      ? new LinkedGit(parts)
      : new SealedGit({ ...parts, base: this.#base, folder: join(paths.cells, key) });
  }

  async #remove(spot: Spot): Promise<void> {
    await this.#run.volumes?.remove(spot.key);
    const git = await this.#makeGit(spot, '');
    await git.remove();
    await rm(this.#furnishedFile(spot.key), { force: true });
  }

  async #open(spot: Spot, start: string): Promise<Place> {
    const { key, name, worktree } = spot;
    const { site, config, variables, paths, secrets } = this.#run;
    let room = await this.#openRoom(spot);
    const git = await this.#makeGit(spot, start, room);
    if (!this.#owners.has(key)) this.#owners.set(key, site.nextOwner());
    const owner = this.#owners.get(key);
    // Once an agent has had it, the host puts nothing into it any more; what was not finished is made anew.
    const furnished = this.#furnishedFile(key);
    const isNew =
      !existsSync(furnished) ||
      !existsSync(worktree) ||
      room?.fresh === true ||
      (await findOvergrowth({ git, config, room })) !== undefined;
    if (isNew) await rm(furnished, { force: true });
    if (isNew && room?.fresh !== true && existsSync(worktree)) {
      // Faster than one file after the other, and there is nothing that could be in the way.
      await this.#run.volumes?.remove(key);
      await git.removeFiles();
      room = await this.#openRoom(spot);
    }
    const tree = room?.tree ?? worktree;
    const { inject } = this.#run.credentials;
    const restored = new Set<string>();
    using turns = new DisposableStack();
    const place = await Place.open({
      site,
      config,
      git,
      room,
      name,
      owner,
      variables,
      inject,
      secrets,
      furnish: async () => {
        if (!isNew) return;
        await this.#copyFiles(tree, owner);
        const cache = await this.#cache(owner);
        for (const plan of await this.#plans(tree, git)) {
          await this.#awaitTurn(plan, cache, turns);
          if (await cache.restore(plan, tree, room?.beside)) restored.add(plan.key);
        }
      },
    });
    try {
      await this.#settle(place, key);
      if (isNew) {
        const plans = await this.#plans(tree, git);
        // What has failed once would fail again, and as slowly.
        const over = new Set([...restored, ...this.#failedInstalls]);
        for (const plan of plans)
          if (plan.runsAlways || !over.has(plan.key)) await this.#install(place, plan, tree);
        await mkdir(paths.cells, { recursive: true });
        await writeFile(furnished, '');
      }
      return place;
    } catch (error) {
      await place[Symbol.asyncDispose]();
      throw error;
    }
  }

  #openRoom({ key, worktree }: Spot): Promise<Room> | undefined {
    return this.#run.volumes?.open(key, this.#run.config.resources.worktree_disk, worktree);
  }

  /** What a worker that was lost had not committed is kept. */
  async #settle(place: Place, key: string): Promise<void> {
    const { paths, site } = this.#run;
    const left = await place.git.settle(place.runGit);
    if (left.ref !== undefined) site.log.warn({ place: key, ref: left.ref }, 'commits kept');
    if (left.patch === undefined) return;
    const file = join(paths.featureLogs, `${key}.interrupted.patch`);
    await mkdir(paths.featureLogs, { recursive: true });
    await writeFile(file, place.secrets.redactor().mask(left.patch));
    site.log.warn({ place: key, file }, 'changes kept');
  }

  /** There as soon as a worktree has everything that belongs into it. */
  #furnishedFile(key: string): string {
    return join(this.#run.paths.cells, `${key}.furnished`);
  }

  /** Files that git does not have, such as `.env`, but for those with the key of the agent in them. */
  async #copyFiles(worktree: string, owner: CellOwner | undefined): Promise<void> {
    const { git, config, credentials, site } = this.#run;
    const { left } = await copyIgnoredFiles({
      root: git.root,
      worktree,
      patterns: config.worktree.copy,
      owner,
      withhold: [...credentials.withheld, ...Object.values(credentials.variables)],
      listIgnored: async () => splitNul(await git.run(['ls-files', '-z', '--others', '--directory'])),
    });
    for (const { path, why } of left) site.log.warn({ path, why }, 'file not copied');
  }

  async #plans(worktree: string, git: PlaceGit): Promise<readonly SetupPlan[]> {
    const { config, site } = this.#run;
    const manifests = await readManifests(worktree);
    const platform = [process.platform, process.arch, site.driver.name, site.image?.recipe ?? ''].join(' ');
    return planSetup(config.worktree, { manifests, platform, place: git.workdir }).plans;
  }

  #cache(owner: CellOwner | undefined): Promise<DependencyCache> {
    return DependencyCache.open({ folder: this.#run.paths.dependencies, owner, log: this.#run.site.log });
  }

  /**
   * Returns when the products of the plan are there, or when it is up to this place to make them: then nobody else begins
   * until `turns` is disposed of. What failed once keeps nobody waiting.
   */
  async #awaitTurn(plan: SetupPlan, cache: DependencyCache, turns: DisposableStack): Promise<void> {
    const { key, products } = plan;
    while (products.length > 0 && !this.#failedInstalls.has(key) && !(await cache.has(plan))) {
      const other = this.#installing.get(key);
      if (other !== undefined) {
        await other;
        continue;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#installing.set(key, promise);
      turns.defer(() => {
        this.#installing.delete(key);
        resolve();
      });
      return;
    }
  }

  async #install(place: Place, plan: SetupPlan, worktree: string): Promise<void> {
    if (await installDependencies(this.#run, place, plan))
      await (await this.#cache(undefined)).keep(plan, worktree);
    else this.#failedInstalls.add(plan.key);
  }

  /** Worktrees and private folders; branches stay. */
  async removeAll(): Promise<void> {
    const { paths, workers } = this.#run;
    for (let worker = 0; worker < workers; worker++) await this.#remove(this.#worker(worker));
    await this.closeChecks();
    await this.#base.remove();
    await this.#run.volumes?.close();
    // Unless somebody has put something there.
    for (const folder of [paths.cells, paths.worktrees]) await rmdir(folder).catch(() => {});
  }
}
