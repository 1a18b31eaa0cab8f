import type { ExecReply } from '../../src/wire/session-exec.ts';
import { digestOf, handOf, openSession } from './acts/held-session.ts';
import { leaveTerminal } from './acts/terminals.ts';
import { expectCounted } from './counting.ts';
import type { Source } from './ledger-check.ts';
import type { EndedCommand, SessionEntry } from './ledger.ts';
import { wordsOf } from './troubles.ts';
import type { World } from './world.ts';

/** What the server itself tells of its sessions, as any caller would ask it. */
export class SessionSource implements Source {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  async list() {
    const sessions = await this.#world.door.list();
    return sessions.map(({ session_id: id, project_id: project }) => ({ id, project }));
  }

  async status(id: string): Promise<number> {
    return (await this.#world.door.ask('GET', `/${id}`)).status;
  }

  async file(id: string, path: string): Promise<string | undefined> {
    const { status, body } = await this.#world.door.ask<{ content: string }>(
      'GET',
      `/${id}/fs?path=${encodeURIComponent(path)}`,
    );
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`file ${path}: ${status} ${body.code} ${body.detail}`);
    return body.content;
  }

  async ended(id: string, exec: string): Promise<EndedCommand | undefined> {
    const { status, body } = await this.#world.door.ask<ExecReply>('GET', `/${id}/execs/${exec}`);
    if (status !== 200 || body.result === null) return undefined;
    const hand = this.#world.door.hold({ session_id: id } as never);
    return { exitCode: body.result.exit_code, output: digestOf(await hand.output(exec)) };
  }

  async finish(entry: SessionEntry): Promise<string[]> {
    const ends = await Promise.allSettled([
      ...[...entry.counting].map(([exec, marker]) => this.#stopCounting(entry, exec, marker)),
      ...[...entry.terminals.keys()].map((exec) => leaveTerminal(this.#world, entry, exec)),
    ]);
    entry.counting.clear();
    entry.terminals.clear();
    return ends.flatMap((end) =>
      end.status === 'rejected' ? [`session ${entry.id}: ${wordsOf(end.reason)}`] : [],
    );
  }

  async #stopCounting(entry: SessionEntry, exec: string, marker: string): Promise<void> {
    const hand = handOf(this.#world, entry);
    await hand.print(`touch /tmp/stop-${marker}`);
    const { exit_code: exitCode } = await hand.result(exec);
    const output = await hand.output(exec);
    expectCounted(output);
    this.#world.ledger.addEnded(entry, exec, { exitCode, output: digestOf(output) });
  }

  async wake(id: string): Promise<void> {
    const hand = this.#world.door.hold({ session_id: id } as never);
    if ((await hand.detail()).state === 'paused') await hand.get('POST', '/resume');
    // What was begun for somebody who did not get the answer ends here.
    await hand.print('true', { reset_cwd: true });
  }

  async reopen({ project, lane }: SessionEntry): Promise<SessionEntry> {
    return (await openSession(this.#world, project, lane)).entry;
  }

  async clear(project: string): Promise<void> {
    await (await this.#world.door.create({ project_id: project })).remove();
  }
}
