import { FurnishedCell, type CellParts } from '../cells/furnished-cell.ts';
import { sightOfWorkspace } from '../cells/require-sight.ts';
import type { CellSpec } from '../core/cell.ts';
import { requireFreezer, requireLasting, requireLastingCell } from '../core/capabilities.ts';
import { HotcellError } from '../core/errors.ts';
import { Workspace } from '../workspace/workspace.ts';
import { HOME_IN_CELL, toWorkspacePath } from './exec-plan.ts';
import { HelperExecs } from './helper-execs.ts';
import type { BegunSession, NewSession } from './new-session.ts';
import { LiveSession } from './session.ts';
import { SessionFiles } from './session-files.ts';
import type { SessionHost } from './session-host.ts';
import type { SessionFacts, SessionRow } from './stored-session.ts';
import { TEMPLATES } from './templates.ts';

const CA_BUNDLE_IN_CELL = `${HOME_IN_CELL}/.ca-certificates.crt`;

/** Makes the folders. */
const PREPARE = [
  'mkdir -p -- "$1" "$2/.local/bin" || exit',
  // Debian calls it python3 only, and `python main.py` is what people write.
  'if ! command -v python && found=$(command -v python3); then ln -sf -- "$found" "$2/.local/bin/python"; fi >/dev/null',
].join('\n');

/** Puts the pieces of a session together: a new one, or one that has lived before. */
export class SessionMaker {
  readonly #host: SessionHost;

  constructor(host: SessionHost) {
    this.#host = host;
  }

  async make(asked: NewSession): Promise<LiveSession> {
    const { driver, engineMounts } = this.#host.options;
    const { createdAt, project, volumeFolder } = asked.facts;
    const furnished = await FurnishedCell.make({
      driver,
      spec: this.#toSpec(asked.facts),
      sight: volumeFolder !== null && engineMounts ? await sightOfWorkspace(volumeFolder) : undefined,
      ...this.#cellParts(),
    });
    const { cell } = furnished;
    try {
      const session = await this.#assemble(
        furnished,
        {
          ...asked,
          cell,
          cwd: toWorkspacePath(project),
          touchedAt: createdAt,
          pausedAt: undefined,
          syncIndex: undefined,
        },
        false,
      );
      await this.#prepare(session);
      // Until now a crash would have left a session that nobody has heard of.
      this.#host.store.sessions.complete(asked.id, {
        id: cell.id,
        record: requireLastingCell(cell).record,
      });
      return session;
    } catch (error) {
      await furnished[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Takes over a session of the server before us. Throws CELL_LOST when its cell is gone. */
  async adopt(row: SessionRow): Promise<LiveSession> {
    const { driver } = this.#host.options;
    if (row.record === null) throw new HotcellError('INTERNAL', 'nothing is stored of how to reach its cell');
    const cell = await requireLasting(driver).adopt(row.record, this.#toSpec(row.facts));
    const session = await this.#assemble(
      new FurnishedCell(cell, this.#cellParts()),
      {
        id: row.id,
        tenant: row.tenant,
        facts: row.facts,
        allow: row.allow ?? undefined,
        cell,
        cwd: row.cwd,
        touchedAt: row.touched_at,
        pausedAt: row.paused_at ?? undefined,
        syncIndex: row.sync_index ?? undefined,
      },
      true,
    );
    try {
      const lastNumber = await session.commands.restore(session.life.isPaused);
      await session.parts.helpers.endInherited(lastNumber);
      // A cell that is taken over runs, whatever it did before.
      if (session.life.isPaused) await requireFreezer(cell).freeze();
      return session;
    } catch (error) {
      session.parts.helpers.letGo();
      await session.parts.furnished.closeNetwork();
      throw error;
    }
  }

  #toSpec(facts: SessionFacts): CellSpec {
    return {
      name: facts.cellName,
      kind: 'session',
      limits: facts.limits,
      image: TEMPLATES[facts.runtime].image,
      lasting: { store: this.#host.store.id },
      workspace: { folder: facts.volumeFolder ?? undefined, owner: facts.volumeOwner },
    };
  }

  #cellParts(): CellParts {
    const { log, caBundle } = this.#host.options;
    return { log, caBundle, caPath: CA_BUNDLE_IN_CELL };
  }

  async #assemble(furnished: FurnishedCell, begun: BegunSession, inherits: boolean): Promise<LiveSession> {
    const { store, options } = this.#host;
    const { clock, log, settings, openNetwork } = options;
    const { id, cell, allow, facts, syncIndex } = begun;
    const helpers = new HelperExecs({ sessionId: id, cell, rows: store.sessions, log, inherits });
    furnished.helpBy(helpers);
    const workspace = new Workspace({ exec: furnished.startHelper, root: toWorkspacePath(facts.project) });
    const files = new SessionFiles({
      sessionId: id,
      workspace,
      rows: store.sessions,
      clock,
      log,
      readBytes: settings.readBytes,
      syncIndex,
    });
    const network = allow === undefined ? undefined : await furnished.openNetwork(openNetwork, allow);
    return new LiveSession({ ...begun, furnished, helpers, files, network, host: this.#host });
  }

  async #prepare({ parts, workspacePath }: LiveSession): Promise<void> {
    const { helpers, furnished, network } = parts;
    const argv = ['bash', '-c', PREPARE, 'bash', workspacePath, HOME_IN_CELL] as const;
    const [{ ok, words }] = await Promise.all([
      helpers.run({ argv, env: {}, cwd: '/' }),
      network === undefined ? undefined : furnished.layAuthorities(),
    ]);
    if (!ok) throw new HotcellError('CELL_START_FAILED', `the workspace cannot be made: ${words.trim()}`);
  }
}
