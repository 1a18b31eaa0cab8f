import { HotcellError } from '../core/errors.ts';
import type { CodeRun, Owner, Workbench, Workbenches } from '../workbench/api.ts';

const ID = /^[A-Za-z0-9_-]{1,128}$/;

export interface DeskOptions {
  readonly owner: Owner;
  workbenches(): Promise<Workbenches>;
  /** Whether calls without a session_id share a session: where a connection is a client's own. */
  readonly keepsSession: boolean;
}

/** Where the calls of one client come in: whose they are, and which session those have that name none. */
export class Desk {
  readonly owner: Owner;
  readonly keepsSession: boolean;
  readonly #workbenches: () => Promise<Workbenches>;
  #currentId: string | undefined;

  constructor(options: DeskOptions) {
    this.owner = options.owner;
    this.keepsSession = options.keepsSession;
    this.#workbenches = () => options.workbenches();
  }

  workbenches(): Promise<Workbenches> {
    return this.#workbenches();
  }

  async open(): Promise<Workbench> {
    return (await this.#workbenches()).open(this.owner);
  }

  /** The session that was named, or the client's own, which is made when it is first used. */
  async find(id: string | undefined): Promise<Workbench> {
    const workbenches = await this.#workbenches();
    if (id !== undefined) return workbenches.find(this.owner, requireId(id, 'WORKBENCH_UNKNOWN'));
    if (!this.keepsSession) {
      throw new HotcellError('WORKBENCH_UNKNOWN', 'this call needs a session_id', {
        field: 'session_id',
        hint: 'Call create_session, and pass its session_id in this and the following calls.',
      });
    }
    return this.#findCurrent(workbenches) ?? this.#openCurrent(workbenches);
  }

  /** Precondition: the run is of the owner. Throws RUN_UNKNOWN. */
  async findRun(
    runId: string,
    sessionId?: string,
  ): Promise<{ readonly workbench: Workbench; readonly run: CodeRun }> {
    const id = requireId(runId, 'RUN_UNKNOWN');
    const workbenches = await this.#workbenches();
    const places =
      sessionId === undefined
        ? workbenches.list(this.owner)
        : [workbenches.find(this.owner, requireId(sessionId, 'WORKBENCH_UNKNOWN'))];
    for (const workbench of places) {
      const run = workbench.runs().find((one) => one.id === id);
      if (run === undefined) continue;
      // Counts as use, so that a session does not end under somebody who waits for it.
      return { workbench: workbenches.find(this.owner, workbench.id), run };
    }
    throw new HotcellError('RUN_UNKNOWN', 'there is no such run; runs go with their session');
  }

  async close(): Promise<void> {
    if (this.#currentId === undefined) return;
    const current = this.#findCurrent(await this.#workbenches());
    this.#currentId = undefined;
    await current?.close();
  }

  #findCurrent(workbenches: Workbenches): Workbench | undefined {
    if (this.#currentId === undefined) return undefined;
    try {
      return workbenches.find(this.owner, this.#currentId);
    } catch (error) {
      if (error instanceof HotcellError && error.code === 'WORKBENCH_UNKNOWN') return undefined;
      throw error;
    }
  }

  #openCurrent(workbenches: Workbenches): Workbench {
    const opened = workbenches.open(this.owner);
    this.#currentId = opened.id;
    return opened;
  }
}

/** SECURITY: ids become parts of paths further below, so they are words or nothing at all. */
function requireId(id: string, code: 'WORKBENCH_UNKNOWN' | 'RUN_UNKNOWN'): string {
  if (ID.test(id)) return id;
  throw new HotcellError(
    code,
    code === 'RUN_UNKNOWN' ? 'there is no such run' : 'there is no such session; it may have expired',
  );
}
