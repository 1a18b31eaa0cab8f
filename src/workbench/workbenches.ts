import { HotcellError, messageOf } from '../core/errors.ts';
import type { Owner, Snippets, Workbench, WorkbenchFacts, Workbenches } from './api.ts';
import type { WorkbenchSite, WorkbenchesOptions } from './options.ts';
import { FileSnippets } from './snippets.ts';
import { LiveWorkbench } from './workbench.ts';

/** Of so many it is remembered that they have expired. */
const EXPIRED_KEPT = 1000;

/** The use case behind run_code: places to run code in, each with a cell that is made when it is needed. */
export class KeptWorkbenches implements Workbenches {
  readonly snippets: Snippets;
  readonly #options: WorkbenchesOptions;
  readonly #open = new Map<string, LiveWorkbench>();
  /** By id, with the owner. */
  readonly #expired = new Map<string, string>();
  readonly #closing = new Set<Promise<void>>();
  readonly #stopSweeping: () => void;
  #site: WorkbenchSite | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: WorkbenchesOptions) {
    this.#options = {
      ...options,
      site: async () => (this.#site = await options.site()),
    };
    this.snippets = new FileSnippets(options.snippetsFolder, options.settings.snippets);
    this.#stopSweeping = options.clock.every(options.settings.sweepMs, () => this.#sweep());
  }

  /** What cells are made with is known after the first run. */
  facts(): WorkbenchFacts {
    const { mode, settings, languages } = this.#options;
    return {
      mode,
      driver: this.#site?.driver.name ?? 'not chosen before the first run',
      runtime: this.#site?.runtime ?? 'not known before the first run',
      languages: Object.keys(languages),
      limits: settings.limits,
      idleMs: settings.idleMs,
      notes: this.#site?.notes ?? [],
    };
  }

  open(owner: Owner): Workbench {
    if (this.#closed !== undefined) throw shuttingDown();
    const { max, maxPerTenant } = this.#options.settings;
    if (this.#open.size >= max)
      throw new HotcellError('TOO_BUSY', `there are ${max} sessions already`, {
        hint: 'Destroy one with destroy_session, or wait until one has expired.',
      });
    if (this.list(owner).length >= maxPerTenant)
      throw new HotcellError('QUOTA_EXCEEDED', `you have ${maxPerTenant} sessions already`, {
        hint: 'Destroy one with destroy_session, or wait until one has expired.',
      });
    this.#options.imports.warmUp?.();
    const workbench = new LiveWorkbench({
      owner,
      options: this.#options,
      snippets: this.snippets,
      onClosed: ({ id }) => this.#open.delete(id),
    });
    this.#open.set(workbench.id, workbench);
    return workbench;
  }

  find(owner: Owner, id: string): Workbench {
    const workbench = this.#open.get(id);
    if (workbench?.owner.tenant === owner.tenant && !workbench.isEnded) {
      workbench.touch();
      return workbench;
    }
    const hasExpired = this.#expired.get(id) === owner.tenant;
    throw hasExpired ? expired(this.#options.settings.idleMs) : unknown();
  }

  list(owner: Owner): readonly Workbench[] {
    return [...this.#open.values()].filter(
      (workbench) => workbench.owner.tenant === owner.tenant && !workbench.isEnded,
    );
  }

  #sweep(): void {
    const { clock, log, settings } = this.#options;
    const now = clock.now();
    for (const workbench of this.#open.values()) {
      workbench.sweep();
      if (workbench.isEnded || workbench.expiresAt() > now) continue;
      log.info({ idleMs: settings.idleMs }, 'workbench expired');
      this.#expired.set(workbench.id, workbench.owner.tenant);
      const [oldest] = this.#expired.keys();
      if (this.#expired.size > EXPIRED_KEPT && oldest !== undefined) this.#expired.delete(oldest);
      this.#end(workbench, expired(settings.idleMs));
    }
  }

  #end(workbench: LiveWorkbench, reason: HotcellError): void {
    const ending = workbench.end(reason).catch((error: unknown) => {
      this.#options.log.error({ error: messageOf(error) }, 'workbench removal failed');
    });
    this.#closing.add(ending);
    void ending.then(() => this.#closing.delete(ending));
  }

  close(): Promise<void> {
    this.#closed ??= this.#closeAll();
    return this.#closed;
  }

  async #closeAll(): Promise<void> {
    this.#stopSweeping();
    for (const workbench of this.#open.values()) this.#end(workbench, shuttingDown());
    await Promise.all(this.#closing);
    await this.#options.afterClose?.();
  }
}

function unknown(): HotcellError {
  return new HotcellError('WORKBENCH_UNKNOWN', 'there is no such session');
}

function expired(idleMs: number): HotcellError {
  const message = `the session has expired: nobody used it for ${Math.round(idleMs / 1000)} s`;
  return new HotcellError('WORKBENCH_UNKNOWN', message);
}

function shuttingDown(): HotcellError {
  return new HotcellError('SHUTTING_DOWN', 'the server is stopping');
}
