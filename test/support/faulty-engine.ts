import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../../src/drivers/process/run-command.ts';
import { BUILDABLE, toBuiltTag } from '../../src/drivers/images/recipe.ts';
import { copyImages } from './copy-images.ts';
import { engineApi, requireImages } from './docker-engine.ts';
import { EngineApi } from './engine-api.ts';
import { claimEngineFolder } from './engine-folder.ts';
import { clearRemains } from './engine-remains.ts';
import { listProcesses, waitFor } from './leftovers.ts';
import { startDaemon, stopDaemon, untilAnswers } from './private-engine.ts';

/** Room for the images and for the cells of one server. */
const DATA_BYTES = 2 * 1024 ** 3;

/** A Docker engine that a test may kill, stop and fill: it has one of its own, with the images of the common one. */
export class FaultyEngine {
  readonly api: EngineApi;
  readonly #folder: string;
  #daemon: ChildProcess;

  private constructor(folder: string, api: EngineApi, daemon: ChildProcess) {
    this.#folder = folder;
    this.api = api;
    this.#daemon = daemon;
  }

  static async start(stack: AsyncDisposableStack): Promise<FaultyEngine> {
    await requireImages();
    const folder = await claimEngineFolder(stack, 'temporary');
    stack.defer(() => clearRemains(folder));
    // Small and in memory, so that it can be filled in a moment.
    mkdirSync(join(folder, 'data'));
    const { code, stderr } = await runCommand([
      'mount', '-t', 'tmpfs', '-o', `size=${DATA_BYTES}`, 'tmpfs', join(folder, 'data'),
    ]); // prettier-ignore
    if (code !== 0) throw new Error(`cannot mount a tmpfs: ${stderr}`);
    const api = new EngineApi(join(folder, 'docker.sock'));
    stack.defer(() => api.close());
    const daemon = startDaemon(folder);
    const engine = new FaultyEngine(folder, api, daemon);
    stack.defer(() => engine.#stop());
    await untilAnswers(api, daemon, folder);
    await copyImages(engineApi().socket, api.socket, BUILDABLE.map(toBuiltTag));
    return engine;
  }

  get host(): string {
    return `unix://${this.api.socket}`;
  }

  /** As a crash does it: nobody is told, and what it had in hand is lost. */
  async crash(): Promise<void> {
    const exited = once(this.#daemon, 'exit');
    this.#daemon.kill('SIGKILL');
    await exited;
  }

  async startAgain(): Promise<void> {
    // Its helper dies with it, a moment later.
    await waitFor('containerd is gone', () => !listProcesses().some((line) => this.#isContainerd(line)));
    // It would take a number for a living process if somebody else has got it meanwhile, or nobody collects the dead.
    for (const file of ['docker.pid', 'exec/containerd/containerd.pid']) {
      rmSync(join(this.#folder, file), { force: true });
    }
    this.#daemon = startDaemon(this.#folder);
    await untilAnswers(this.api, this.#daemon, this.#folder);
  }

  #isContainerd(line: string): boolean {
    return /^\S*containerd --config/.test(line) && line.includes(this.#folder);
  }

  /** It takes connections and never answers. */
  hang(): void {
    this.#daemon.kill('SIGSTOP');
  }

  goOn(): void {
    this.#daemon.kill('SIGCONT');
  }

  /** Leaves no byte in its data root; the returned function frees them again. */
  async fillDisk(): Promise<() => void> {
    const file = join(this.#folder, 'data', 'filler');
    writeFileSync(file, '');
    await runCommand(['sh', '-c', 'cat /dev/zero >"$0"', file]);
    return () => rmSync(file);
  }

  /** Names of all containers and volumes, whoever made them. */
  async holdings(): Promise<string[]> {
    const containers = await this.api.call<{ Names: string[] }[]>('GET', '/containers/json?all=1');
    const { Volumes } = await this.api.call<{ Volumes: { Name: string }[] | null }>('GET', '/volumes');
    return [...containers.flatMap(({ Names }) => Names), ...(Volumes ?? []).map(({ Name }) => Name)];
  }

  async #stop(): Promise<void> {
    this.goOn();
    await stopDaemon(this.#daemon, this.api);
  }
}
