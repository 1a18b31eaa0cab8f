import type { FaultyEngine } from '../support/faulty-engine.ts';
import type { FleetCommand } from '../support/fleet-command.ts';
import { instancesOf } from '../support/footprint.ts';
import { waitFor } from '../support/leftovers.ts';
import { mountDisk } from '../support/own-disk.ts';
import type { Way } from '../support/served-by.ts';
import { TestServer, dataDirectoryOf, makeStateDirectory } from '../support/server.ts';
import { SoakDoor } from './door.ts';
import { Ledger, type EndedCommand, type SessionEntry } from './ledger.ts';
import { descendantsOf, isAlive, type SeenProcess } from '../support/processes.ts';
import { Troubles } from './troubles.ts';

/** One booted cell per language, so that the next run has to wait for another one often enough. */
export const POOL_SIZE = 1;

/** Room for the workspaces of all lanes, for those that are kept, and for what the server writes. */
const DISK_BYTES = 384 * 1024 * 1024;

export interface Wire {
  cut(): void;
}

/** The place of one soak: a server after the other in the same folders, and what is known of them. */
export class World {
  readonly stateDirectory = makeStateDirectory();
  readonly ledger = new Ledger();
  readonly troubles = new Troubles();
  readonly door = new SoakDoor(() => this.server.url);
  readonly way: Way;
  /** That may be killed and frozen, because it is only for this. */
  readonly engine: FaultyEngine | undefined;
  /** Connections of those who read events or sit at a terminal, for whoever wants to break them. */
  readonly wires = new Set<Wire>();
  readonly fleets = new Set<FleetCommand>();
  /** Folders of servers that have ended, and processes that they had: nothing of them may be left. */
  readonly formerInstances = new Set<string>();
  readonly formerPids = new Set<number>();
  #formerProcesses: SeenProcess[] = [];
  #server: TestServer | undefined;
  #whenUp = Promise.withResolvers<void>();
  #lives = 0;
  readonly #mode: 'container' | 'preload';
  /** Ends of what belongs to one server's life, such as the client of its MCP door. */
  readonly #endings: (() => Promise<unknown>)[] = [];

  constructor(way: Way, engine: FaultyEngine | undefined, mode: 'container' | 'preload') {
    this.way = way;
    this.#mode = mode;
    this.engine = engine;
    mountDisk(this.dataDirectory, DISK_BYTES);
  }

  get dataDirectory(): string {
    return dataDirectoryOf(this.stateDirectory);
  }

  get server(): TestServer {
    if (this.#server === undefined) throw new Error('no server has been started');
    return this.#server;
  }

  get isUp(): boolean {
    const { exitCode, signalCode } = this.server.process;
    return exitCode === null && signalCode === null;
  }

  /** How many servers there were so far. */
  get lives(): number {
    return this.#lives;
  }

  /** Resolves with the server as soon as one is there. */
  async up(): Promise<TestServer> {
    await this.#whenUp.promise;
    return this.server;
  }

  async start(): Promise<void> {
    // prettier-ignore
    const settings = [
      `pool.size=${POOL_SIZE}`, 'sessions.rateLimit.perMinute=0',
      `mcp.mode=${this.#mode}`,
    ];
    this.#server = await TestServer.start({
      way: this.way,
      stateDirectory: this.stateDirectory,
      args: settings.flatMap((setting) => ['--set', setting]),
    });
    this.#lives++;
    this.#whenUp.resolve();
  }

  /** Ends the server; its traces are known afterwards. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.#whenUp = Promise.withResolvers<void>();
    this.note();
    const { pid = 0 } = this.server.process;
    this.formerPids.add(pid);
    for (const id of instancesOf(this.stateDirectory))
      if (!id.startsWith('lasting-')) this.formerInstances.add(id);
    const code = await this.server.stop(signal);
    await Promise.allSettled(this.#endings.splice(0).map((end) => end()));
    return code;
  }

  /** A result that was told. With a full disk the server may not have been able to note it, and says so in its log. */
  noteEnded(entry: SessionEntry, exec: string, ended: EndedCommand): void {
    if (this.troubles.since(performance.now()).includes('full-disk')) this.ledger.forgetCommand(entry, exec);
    else this.ledger.addEnded(entry, exec, ended);
  }

  atEndOfServer(end: () => Promise<unknown>): void {
    this.#endings.push(end);
  }

  /** To be called while the server runs: afterwards nobody would know what it had started. Cells of sessions stay. */
  note(): void {
    const { pid = 0 } = this.server.process;
    this.#formerProcesses.push(...descendantsOf(pid).filter(({ groups }) => !groups.includes('/lasting-')));
  }

  /** What servers that have ended had started and is still there. */
  survivors(): string[] {
    this.#formerProcesses = this.#formerProcesses.filter((seen) => isAlive(seen));
    return this.#formerProcesses
      .filter(({ words }) => !words.includes('/lasting-'))
      .map(({ pid, words }) => `process ${pid} of a former server: ${words}`);
  }

  async untilDown(): Promise<void> {
    await waitFor('the server has ended', () => !this.isUp);
  }
}
