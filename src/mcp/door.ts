import { randomBytes } from 'node:crypto';
import type { McpServer } from '@modelcontextprotocol/server';
import { messageOf } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { Owner, Workbenches } from '../workbench/api.ts';
import { Desk } from './desk.ts';
import { addEverything, makeServed } from './make-server.ts';
import type { McpSettings, Served } from './tool.ts';

export interface McpDoorOptions {
  /**
   * Called when the first call needs them, so that the first answer of the protocol waits for nothing. A failure is the
   * answer to that call; the next call tries again.
   */
  workbenches(): Promise<Workbenches>;
  readonly settings: McpSettings;
  readonly log: Log;
}

/** What all transports share. */
export class McpDoor {
  readonly settings: McpSettings;
  readonly log: Log;
  readonly #open: () => Promise<Workbenches>;
  readonly #key = randomBytes(32);
  readonly #afterwards = new Set<Promise<void>>();
  #workbenches: Promise<Workbenches> | undefined;

  constructor(options: McpDoorOptions) {
    this.#open = () => options.workbenches();
    this.settings = options.settings;
    this.log = options.log;
  }

  makeDesk(owner: Owner, { keepsSession }: { readonly keepsSession: boolean }): Desk {
    return new Desk({ owner, keepsSession, workbenches: () => this.#opened() });
  }

  makeServer(desk: Desk): McpServer {
    const { settings, log } = this;
    const parts = {
      settings,
      log,
      key: this.#key,
      afterwards: (work: Promise<void>) => this.afterwards(work),
    };
    const served = makeServed(desk, parts);
    this.equip(served);
    return served.server;
  }

  equip(served: Served): void {
    addEverything(served);
  }

  /** Work that nobody waits for but the end of the server. */
  afterwards(work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => this.log.warn({ error: messageOf(error) }, 'workbench close failed'))
      .finally(() => this.#afterwards.delete(done));
    this.#afterwards.add(done);
  }

  /** Ends every session of every client. */
  async close(): Promise<void> {
    await Promise.all(this.#afterwards);
    const opened = await this.#workbenches?.catch(() => undefined);
    await opened?.close();
  }

  #opened(): Promise<Workbenches> {
    this.#workbenches ??= this.#open().catch((error: unknown) => {
      this.#workbenches = undefined;
      throw error;
    });
    return this.#workbenches;
  }
}
