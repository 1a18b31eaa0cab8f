import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import type { SessionRequest } from './api.ts';
import { SessionFixture, begin, toSessionRequest } from './session-fixture.double.ts';

const MINUTE = 60_000;
const MiB = 1024 * 1024;

describe('a new session', () => {
  test('[RS-01] [RS-13] [RS-14] is a lasting cell with the defaults, a volume of its project, and no network', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    const session = await fixture.create(sessions, { runtime: 'node', user: 'ann' });
    const { id, ...shown } = session.describe();
    expect(id).toMatch(/^session_[0-9a-f]{32}$/);
    expect(shown).toMatchObject({
      workspace: '/workspace/shop',
      project: 'shop',
      user: 'ann',
      runtime: 'node',
      state: 'running',
      cwd: '/workspace/shop',
      network: [],
      limits: { cpus: 1, memoryBytes: 2048 * MiB, diskBytes: 512 * MiB, processes: 64 },
      storage: 'volume',
      defaultCommand: 'npm test',
      expiresSoon: false,
    });
    const [cell] = fixture.host.cells;
    expect(cell?.spec).toMatchObject({
      kind: 'session',
      name: expect.stringMatching(/^session-node-[0-9a-f]{4}$/),
      image: { recipe: 'node' },
      lasting: { store: expect.stringMatching(/^[0-9a-f]{12}$/) },
      workspace: { folder: expect.stringContaining('/volumes/'), owner: 4711 },
      limits: { cpus: 1, memoryBytes: 2048 * MiB, diskBytes: 512 * MiB, processes: 64 },
    });
    expect(cell?.all[0]?.request.argv.slice(4)).toEqual(['/workspace/shop', '/workspace/.home']);
    expect(session.egress()).toBeUndefined();
    await expect(session.setEgress(['example.org'])).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    expect((await session.detail()).usage).toMatchObject({ diskBytes: 4096, running: [] });
  });

  test('[RS-14] no two tenants, users or projects share a volume; sessions of one project do', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    const folder = async (
      request: Partial<SessionRequest>,
      caller = fixture.caller,
    ): Promise<string | undefined> => {
      await sessions.create(caller, toSessionRequest(request));
      return fixture.host.cells.at(-1)?.spec.workspace?.folder;
    };
    const folders = [
      await folder({ project: 'shop' }),
      await folder({ project: 'shop', user: 'ann' }),
      await folder({ project: 'shop', user: 'bob' }),
      await folder({ project: 'annshop' }),
      await folder({ project: 'shop' }, fixture.stranger),
    ];
    expect(new Set(folders).size).toBe(5);
    expect(await folder({ project: 'shop', user: 'ann' })).toBe(folders[1]);
  });

  test('[RS-13] may ask for less and, up to the ceilings, for more', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open({
      settings: { ceilings: { cpus: 2, memoryBytes: 4096 * MiB, ttlMs: 60 * MINUTE } },
    });
    const session = await fixture.create(sessions, {
      limits: { cpus: 2, memoryBytes: 64 * MiB },
      ttlMs: 60_000,
    });
    expect(session.describe().limits).toEqual({
      cpus: 2,
      memoryBytes: 64 * MiB,
      diskBytes: 512 * MiB,
      processes: 64,
    });
    for (const [request, field] of [
      [{ limits: { cpus: 3 } }, 'limits.cpus'],
      [{ limits: { memoryBytes: 4097 * MiB } }, 'limits.memory_mb'],
      [{ limits: { diskBytes: 1_000_000 * MiB } }, 'limits.disk_mb'],
      [{ limits: { processes: 2000 } }, 'limits.processes'],
      [{ ttlMs: 3_601_000 }, 'ttl_s'],
    ] as const) {
      await expect(fixture.create(sessions, request)).rejects.toMatchObject({
        code: 'LIMIT_TOO_HIGH',
        field,
      });
    }
    expect(fixture.host.cells).toHaveLength(1);
  });

  test('[RS-18] [SC-05] is refused over the quota, the rate limit and the size of the server, also while others are made', async () => {
    await using fixture = new SessionFixture();
    let taken = 0;
    const take = (): void => {
      if (++taken > 6) throw new HotcellError('RATE_LIMITED', 'too many');
    };
    const sessions = await fixture.open({ settings: { max: 3 }, rateLimit: { take } });
    const ask = toSessionRequest();
    const poor = { tenant: { name: 'poor', quotas: { sessions: 1 } } };
    const both = await Promise.allSettled([sessions.create(poor, ask), sessions.create(poor, ask)]);
    expect(both).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'QUOTA_EXCEEDED' } }]);
    const three = await Promise.allSettled([1, 2, 3].map(() => sessions.create(fixture.caller, ask)));
    expect(three.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(three[2]).toMatchObject({ reason: { code: 'TOO_BUSY' } });
    await sessions.create(fixture.stranger, ask).catch(() => {});
    await expect(sessions.create(fixture.caller, ask)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    expect(fixture.host.alive).toHaveLength(3);
  });

  test('[RS-01] that fails leaves nothing behind', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    fixture.driver.beforeCreate = () => Promise.reject(new HotcellError('CELL_START_FAILED', 'no runtime'));
    await expect(fixture.create(sessions)).rejects.toMatchObject({ code: 'CELL_START_FAILED' });
    expect(fixture.volumes.events.slice(-2)).toEqual(['make', 'release nothing']);
    expect(sessions.store.sessions.living()).toEqual([]);
    expect(sessions.stats()).toMatchObject({ open: 0, created: 0, ended: { create_failed: 1 } });
  });
});

describe('finding a session', () => {
  test('[RS-01] [SC-05] unknown, somebody else’s and ended ones are told apart only to their owner', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open({ settings: { endedMs: 10 * MINUTE } });
    const session = await fixture.create(sessions);
    const code = (find: () => unknown): string => {
      try {
        find();
        return 'found';
      } catch (error) {
        return error instanceof HotcellError ? `${error.code}: ${error.message}` : String(error);
      }
    };
    const nobody = code(() => sessions.find(fixture.caller, `session_${'0'.repeat(32)}`));
    expect(nobody).toMatch(/^SESSION_UNKNOWN/);
    expect(code(() => sessions.find(fixture.stranger, session.id))).toBe(nobody);
    expect([sessions.list(fixture.caller).length, sessions.list(fixture.stranger).length]).toEqual([1, 0]);
    await session.destroy();
    expect(code(() => sessions.find(fixture.stranger, session.id))).toBe(nobody);
    expect(code(() => sessions.find(fixture.caller, session.id))).toMatch(
      /^SESSION_ENDED: .*\(deleted\): deleted on request/,
    );
    await fixture.clock.advance(12 * MINUTE);
    expect(code(() => sessions.find(fixture.caller, session.id))).toBe(nobody);
  });

  test('[RS-18] no more ended ones are remembered than the operator allows', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open({ settings: { endedMax: 2 } });
    const ids: string[] = [];
    for (let count = 0; count < 4; count++) {
      const session = await fixture.create(sessions);
      ids.push(session.id);
      await session.destroy();
      await fixture.clock.advance(1);
    }
    await fixture.clock.advance(MINUTE);
    const codes = ids.map((id) => {
      try {
        return sessions.find(fixture.caller, id).id;
      } catch (error) {
        return error instanceof HotcellError ? error.code : '';
      }
    });
    expect(codes).toEqual(['SESSION_UNKNOWN', 'SESSION_UNKNOWN', 'SESSION_ENDED', 'SESSION_ENDED']);
  });
});

describe('the end of a session', () => {
  test('[RS-12] [RS-17] ends its commands, removes cell and output, and keeps dependencies', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    const session = await fixture.create(sessions);
    const running = await begin(session, 'sleep');
    fixture.host.cells[0]?.users[0]?.say('x');
    await vi.waitFor(() => expect(running.outputBytes).toBe(1));
    const waiting = begin(session, 'next');
    const outputs = join(fixture.folder, 'output');
    expect(readdirSync(outputs)).toHaveLength(1);
    const [refused] = await Promise.allSettled([waiting, session.destroy(), session.destroy()]);
    expect(refused).toMatchObject({ reason: { code: 'SESSION_ENDED' } });
    expect((await running.result).end).toMatchObject({ reason: 'killed', killedBy: 'session_deleted' });
    expect(fixture.host.alive).toEqual([]);
    expect(fixture.volumes.events).toEqual(['reclaim all but 0', 'make', 'release dependencies']);
    expect(readdirSync(outputs)).toEqual([]);
    expect(sessions.store.execs.of(session.id)).toEqual([]);
    await expect(begin(session, 'late')).rejects.toMatchObject({ code: 'SESSION_ENDED' });
    await expect(session.pause()).rejects.toMatchObject({ code: 'SESSION_ENDED' });
    expect(sessions.stats()).toMatchObject({ open: 0, ended: { deleted: 1 }, execs: { killed: 1 } });
  });

  test('[RS-17] a volume that is shared goes with the last session', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    const one = await fixture.create(sessions);
    const other = await fixture.create(sessions);
    await one.destroy();
    expect(fixture.volumes.events.at(-1)).toBe('share');
    await other.destroy();
    expect(fixture.volumes.events.at(-1)).toBe('release dependencies');
  });

  test('[RS-18] comes after 30 minutes without a request, and keeps all files', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    const { id } = await fixture.create(sessions);
    await fixture.clock.advance(28 * MINUTE);
    expect(sessions.list(fixture.caller)[0]?.expiresSoon).toBe(true);
    sessions.find(fixture.caller, id);
    expect(sessions.list(fixture.caller)[0]?.expiresSoon).toBe(false);
    await fixture.clock.advance(29 * MINUTE);
    expect(sessions.stats().open).toBe(1);
    await fixture.clock.advance(2 * MINUTE);
    await vi.waitFor(() => expect(fixture.host.alive).toEqual([]));
    expect(() => sessions.find(fixture.caller, id)).toThrow(/\(expired\): no request for 1800 s/);
    await vi.waitFor(() =>
      expect(fixture.audited.at(-1)).toMatchObject({ action: 'session.expire', project: 'shop' }),
    );
    expect(fixture.volumes.events.at(-1)).toBe('release all');
  });

  test('[RS-18] a running command is life, and so is who looks at a terminal; a terminal alone is not', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open({ settings: { timeoutMs: 100 * MINUTE } });
    const session = await fixture.create(sessions, { ttlMs: 600_000 });
    await begin(session, 'long', { background: true });
    await fixture.clock.advance(50 * MINUTE);
    expect(sessions.stats().open).toBe(1);
    fixture.host.cells[0]?.users[0]?.exit(0);
    const terminal = await session.openTerminal({ size: { rows: 24, columns: 80 }, env: {} });
    const leaving = new AbortController();
    const viewer = terminal.follow(0, leaving.signal)[Symbol.asyncIterator]();
    fixture.host.cells[0]?.users[1]?.say('$ ');
    expect((await viewer.next()).value).toMatchObject({ type: 'stdout' });
    await fixture.clock.advance(50 * MINUTE);
    expect(sessions.stats().open).toBe(1);
    leaving.abort();
    await viewer.next();
    await fixture.clock.advance(11 * MINUTE);
    expect(sessions.stats().open).toBe(0);
  });

  test('[RS-18] a pause does not end the counting', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    const session = await fixture.create(sessions);
    await begin(session, 'long');
    await session.pause();
    expect(session.describe().state).toBe('paused');
    expect(sessions.stats().paused).toBe(1);
    await fixture.clock.advance(31 * MINUTE);
    expect(sessions.stats().open).toBe(0);
  });

  test('[RS-22] a cell that is lost ends the session and its commands with the reason, and keeps the files', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    const session = await fixture.create(sessions);
    const exec = await begin(session, 'sleep');
    fixture.driver.cells[0]?.lose();
    expect((await exec.result).end.reason).toBe('cell_lost');
    await vi.waitFor(() => expect(sessions.stats()).toMatchObject({ open: 0, ended: { cell_lost: 1 } }));
    expect(() => sessions.find(fixture.caller, session.id)).toThrow(/\(cell_lost\): its cell was ended/);
    expect(fixture.volumes.events.at(-1)).toBe('release all');
  });

  test('[RS-13] a cell that went with its memory says so', async () => {
    await using fixture = new SessionFixture();
    const sessions = await fixture.open();
    const session = await fixture.create(sessions);
    const exec = await begin(session, 'eat');
    const usage = { cpuMs: 1, peakMemoryBytes: 1, reached: ['memoryBytes'] } as const;
    fixture.host.cells[0]?.users[0]?.exit({ kind: 'limit', limit: 'memoryBytes' }, { usage });
    expect((await exec.result).end.reason).toBe('memory');
    fixture.driver.cells[0]?.lose();
    await vi.waitFor(() => expect(sessions.stats().ended).toEqual({ memory: 1 }));
  });
});

test('[RS-22] a second server is refused the folder by name, until the first one is gone', async () => {
  await using fixture = new SessionFixture();
  const first = await fixture.open();
  await expect(fixture.open()).rejects.toMatchObject({
    code: 'SESSIONS_UNAVAILABLE',
    message: `another server uses ${fixture.folder}`,
    hint: expect.stringContaining('sessions.dir'),
  });
  await first.close();
  expect(await fixture.open()).toBeDefined();
  expect(existsSync(join(fixture.folder, 'sessions.db'))).toBe(true);
});
