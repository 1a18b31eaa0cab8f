import assert from 'node:assert/strict';
import { waitFor } from './leftovers.ts';
import { mountDisk } from './own-disk.ts';
import type { Way } from './served-by.ts';
import { dataDirectoryOf, makeStateDirectory, TestServer, type ServerOptions } from './server.ts';
import { SessionDoor } from './session-door.ts';
import { clearSessions, describeSessions, siteOf } from './session-remains.ts';

/** Waiting interpreters are for `/execute`; a server that is here for its sessions boots none. */
const SESSIONS_ONLY = ['--set', 'pool.size=0'];
const UNLIMITED_RATE = ['--set', 'sessions.rateLimit.perMinute=0'];

const LINES_TOLD = 40;

interface SiteOptions extends Pick<ServerOptions, 'args' | 'env'> {
  readonly way: Way;
  /** Keys of the tenants of the server; without any everybody is served. */
  readonly keys?: readonly string[];
  readonly limitRate?: boolean;
  /** Everything that is kept is on a disk of its own, of this size. */
  readonly diskBytes?: number;
}

/** One place for sessions with one server at a time. At its end all sessions are deleted, and nothing may be left. */
export class ServedSessions implements AsyncDisposable {
  readonly stateDirectory = makeStateDirectory();
  readonly #options: SiteOptions;
  #server: TestServer | undefined;

  private constructor(options: SiteOptions) {
    this.#options = options;
  }

  static async open(options: SiteOptions): Promise<ServedSessions> {
    const served = new ServedSessions(options);
    try {
      if (options.diskBytes !== undefined) mountDisk(served.dataDirectory, options.diskBytes);
      await served.start();
      return served;
    } catch (error) {
      await clearSessions(siteOf(served.stateDirectory, options.way.driver));
      throw error;
    }
  }

  get server(): TestServer {
    assert.ok(this.#server !== undefined, 'no server runs');
    return this.#server;
  }

  get dataDirectory(): string {
    return dataDirectoryOf(this.stateDirectory);
  }

  get way(): Way {
    return this.#options.way;
  }

  door(key = this.#options.keys?.[0]): SessionDoor {
    return new SessionDoor(() => this.server.url, key);
  }

  /** One more server on the same folders; the caller stops it. */
  startBeside(more: readonly string[] = []): Promise<TestServer> {
    const { way, args = [], env = {}, limitRate } = this.#options;
    const rate = limitRate === true ? [] : UNLIMITED_RATE;
    const { stateDirectory } = this;
    return TestServer.start({
      way,
      stateDirectory,
      env,
      args: [...SESSIONS_ONLY, ...rate, ...args, ...more],
    });
  }

  async start(): Promise<TestServer> {
    this.#server = await this.startBeside();
    return this.#server;
  }

  /** Ends the server, with -9 unless another signal is given; its sessions go on. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    return this.server.stop(signal);
  }

  async restart(signal: NodeJS.Signals = 'SIGKILL'): Promise<TestServer> {
    await this.kill(signal);
    return this.start();
  }

  /** What is on the host of these sessions; no server may run. */
  remains(): Promise<string[]> {
    return describeSessions(siteOf(this.stateDirectory, this.way.driver));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { stateDirectory } = this;
    try {
      if (this.server.process.exitCode !== null || this.server.process.signalCode !== null)
        await this.start();
      for (const key of this.#options.keys ?? [undefined]) await removeAll(this.door(key));
      const code = await this.kill('SIGTERM');
      // Containers take a moment to be removed after their end.
      await waitFor('nothing is left', async () => (await this.remains()).length === 0).catch(() => {});
      const remains = (await this.remains()).slice(0, LINES_TOLD);
      const words = code === 0 ? '' : this.server.output.slice(-2000);
      assert.deepEqual({ code, remains, words }, { code: 0, remains: [], words: '' });
    } finally {
      await this.#server?.stop('SIGKILL');
      await clearSessions(siteOf(stateDirectory, this.way.driver));
    }
  }
}

/** As often as it takes: the rate of requests may be limited. */
async function removeAll(door: SessionDoor): Promise<void> {
  const remove = async (id: string): Promise<boolean> => (await door.ask('DELETE', `/${id}`)).status !== 429;
  const sessions = await door.list();
  await Promise.all(sessions.map(({ session_id: id }) => waitFor('a session is removed', () => remove(id))));
}
