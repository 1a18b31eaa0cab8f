import { existsSync, globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SessionExecReply } from '../../src/wire/session-exec.ts';
import type { FsReply } from '../../src/wire/session-files.ts';
import { engineApi } from '../support/docker-engine.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import { dataDirectoryOf } from '../support/server.ts';
import { ServedSessions } from '../support/session-site.ts';
import type { Hand, SessionDoor } from '../support/session-door.ts';

const MiB = 1024 * 1024;

/** Forks until it may not any more, and tells how often that was and what the kernel said. */
const COUNTED_FORKS = `perl -e 'for ($n = 0;; $n++) { $pid = fork; sleep 1000 if defined $pid && !$pid;
if (!defined $pid) { print "$n ", $! + 0, "\\n"; exit 3 } }'`;
const ENDLESS_FORKS = `perl -e 'for (;;) { fork }'`;
/** Writes to every page. */
const take = (megabytes: number): string => `perl -e '$x = "x" x ($ARGV[0] << 20); sleep 1' ${megabytes}`;

/** In memory, though it looks like a file; the number of the call is another one on ARM. */
const NAMELESS_FILE = `perl -e 'syscall($ARGV[0] eq "x86_64" ? 319 : 279, my $n = "x", 0); open F, ">&=", 3;
print F "x" x 1048576 for 1 .. 200' $(uname -m)`;

/** The limits of a cell as the kernel or the engine has them, not as we say. */
interface Enforced {
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly processes: number;
}

describeEach(FRESH_WAYS, (way) => {
  let served: ServedSessions;
  let door: SessionDoor;
  beforeAll(async () => {
    served = await ServedSessions.open({ way, env: { HOTCELL_SESSIONS_LIMITS_DISK_BYTES: undefined } });
    door = served.door();
  });
  afterAll(() => served[Symbol.asyncDispose]());

  /** Of the only cell that there is. */
  function readEnforced(): Promise<Enforced> {
    return way.driver === 'docker'
      ? readFromEngine(served.stateDirectory)
      : Promise.resolve(readFromKernel(served.stateDirectory));
  }

  test('[RS-13] a session that asks for nothing has 1 CPU, 2 GB, 512 MB of disk and 64 processes', async () => {
    await using session = await door.create();
    expect(session.made.limits).toEqual({ cpus: 1, memory_mb: 2048, disk_mb: 512, processes: 64 });
    expect(await readEnforced()).toEqual({ memoryBytes: 2048 * MiB, cpus: 1, processes: 64 });
    const blocks = await session.print('df -k --output=size /workspace /tmp | tail -n 2');
    for (const kilobytes of blocks.trim().split('\n').map(Number)) {
      expect(kilobytes).toBeLessThanOrEqual(512 * 1024);
      expect(kilobytes).toBeGreaterThan(450 * 1024);
    }
  });

  describe('processes', () => {
    test('[RS-13] forks that stay reach 64 and no further, and the reply says so', async () => {
      await using session = await door.create();
      const reply = await session.exec(COUNTED_FORKS);
      const [count = 0, errno] = reply.stdout.trim().split(' ').map(Number);
      // It really forked, and the kernel said EAGAIN.
      expect(count).toBeGreaterThan(45);
      expect(count).toBeLessThan(64);
      expect(errno).toBe(11);
      expect(reply).toMatchObject({
        exit_code: 3,
        end: { reason: 'processes' },
        limits_reached: ['processes'],
      });
      expect(reply.end.message).toContain('as many processes as it may have');
      await session.expectUsable();
      expect((await session.detail()).usage.processes).toBeLessThan(8);
    });

    test('[RS-13] a fork bomb that never ends dies of the timeout with all its children', async () => {
      await using session = await door.create();
      const reply = await session.exec(ENDLESS_FORKS, { timeout_s: 1.5 });
      expect(reply).toMatchObject({
        exit_code: 124,
        end: { reason: 'timeout' },
        limits_reached: ['processes'],
      });
      await session.expectUsable();
      expect((await session.detail()).usage.processes).toBeLessThan(8);
    });

    test('[RS-13] a bomb in the background can be seen and ended, and a neighbour does not notice it', async () => {
      await using session = await door.create();
      await using neighbour = await door.create();
      const bomb = await session.begin(ENDLESS_FORKS);
      await neighbour.expectUsable();
      expect((await session.detail()).usage.running).toEqual([bomb]);
      // Nothing of ours finds room to start either; that is told as what it is and ends nothing.
      const { status, body } = await session.ask<Partial<SessionExecReply>>('POST', '/exec', {
        command: 'echo in',
      });
      expect(['200 exit', '200 start_failed', '503 CELL_START_FAILED']).toContain(
        `${status} ${body.end?.reason ?? body.code}`,
      );
      expect(await session.get('POST', `/execs/${bomb}/kill`)).toEqual({ killed: true, exec_ids: [bomb] });
      expect(await session.result(bomb)).toMatchObject({ end: { reason: 'killed', killed_by: 'request' } });
      await session.expectUsable();
    });
  });

  describe('disk', () => {
    test('[RS-13] 512 MB fit into the workspace, and not one block more', async () => {
      await using session = await door.create();
      const reply = await session.exec('head -c 600M /dev/zero > big; code=$?; stat -c %s big; exit $code');
      expect(reply.stderr).toContain('No space left on device');
      expect(reply).toMatchObject({ ok: false, end: { reason: 'disk' }, limits_reached: ['disk'] });
      expect(reply.end.message).toContain('the disk of the session is full');
      const written = Number(reply.stdout);
      expect(written).toBeLessThan(512 * MiB);
      expect(written).toBeGreaterThan(450 * MiB);
      expect((await session.exec('printf more > /tmp/more')).limits_reached).toEqual(['disk']);
      // Commands go on: they need no disk.
      expect(await session.print('cd /tmp && echo fine')).toBe('fine\n');
      expect((await session.exec('pwd')).stdout).toBe('/tmp\n');
      await session.print('rm "$OLDPWD"/big "/workspace"/*/big; cd /workspace/*');
      await session.expectUsable();
    });

    test('[RS-13] /tmp is a part of it, also with many small files', async () => {
      await using session = await door.create({ limits: { disk_mb: 16 } });
      const fill = `mkdir /tmp/many && cd /tmp/many && perl -e 'for ($n = 0;; $n++) {
open F, ">", $n or do { print "$n ", $! + 0, "\\n"; exit 3 }; close F }'`;
      const reply = await session.exec(fill);
      const [count = 0, errno] = reply.stdout.trim().split(' ').map(Number);
      expect(count).toBeGreaterThan(500);
      expect(count).toBeLessThan((16 * MiB) / 4096);
      expect(errno).toBe(28);
      expect(reply).toMatchObject({ exit_code: 3, end: { reason: 'disk' }, limits_reached: ['disk'] });
      const answer = await session.ask('POST', '/upload', { files: [{ path: 'a', content: '' }] });
      expect(answer).toMatchObject({ status: 507, body: { code: 'DISK_FULL' } });
      await session.print('rm -r /tmp/many; cd /workspace/*');
      await session.expectUsable();
    });

    test('[RS-13] holes and reservations give no room that is not there', async () => {
      await using session = await door.create({ limits: { disk_mb: 16 } });
      await session.print('truncate -s 10G hole && rm hole');
      const reply = await session.exec('fallocate -l 40M reserved');
      expect(reply.stderr).toContain('No space left on device');
      await session.print('rm -f reserved');
      await session.expectUsable();
    });

    test('[RS-13, SC-02] an upload that does not fit is refused as a whole', async () => {
      await using session = await door.create({ limits: { disk_mb: 16 } });
      await session.get('POST', '/upload', { files: [{ path: 'old.txt', content: 'old' }] });
      const large = 'x'.repeat(9 * MiB);
      const files = [
        { path: 'old.txt', content: 'new' },
        { path: 'sub/first', content: large },
        { path: 'sub/second', content: large },
      ];
      for (const route of ['/upload', '/sync']) {
        const body = route === '/sync' ? { files, delete: false } : { files };
        const answer = await session.ask('POST', route, body);
        expect(answer).toMatchObject({ status: 507, body: { code: 'DISK_FULL' } });
        expect(answer.body.hint).toContain('disk_mb');
      }
      const { content } = await session.get<{ content: string }>('GET', '/fs?path=old.txt');
      expect(content).toBe('old');
      const left = await session.print('find . -type f');
      expect(left).toBe('./old.txt\n');
      const used = (await session.detail()).usage.disk_bytes;
      expect(used).toBeLessThan(2 * MiB);
      await session.expectUsable();
    });

    test('[RS-13, SC-02] a patch that does not fit changes nothing', async () => {
      await using session = await door.create({ limits: { disk_mb: 8 } });
      await session.get('POST', '/upload', { files: [{ path: 'a.txt', content: 'one\n' }] });
      await session.exec('head -c 100M /dev/zero > big');
      const added = Array.from({ length: 4000 }, (_, line) => `+${line}${'x'.repeat(100)}\n`).join('');
      const diff = `--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1,4000 @@\n${added}`;
      const answer = await session.ask('POST', '/apply_patch', { diff });
      expect(answer).toMatchObject({ status: 507, body: { code: 'DISK_FULL' } });
      expect(await session.print('cat a.txt; ls')).toBe('one\na.txt\nbig\n');
      const entry = await session.get<FsReply>('GET', '/fs?path=a.txt');
      expect(entry).toMatchObject({ content: 'one\n' });
    });
  });

  describe('memory', () => {
    test('[RS-13] more than 2 GB ends the command, with that as the reason', async () => {
      await using session = await door.create();
      const reply = await session.exec(take(2200));
      expectMemoryEnd(reply);
      expect(reply.end.message).toContain('out of memory, limit 2048 MB');
      await session.expectUsable();
    });

    test.each([
      ['one process', take(200)],
      ['a file without a name', NAMELESS_FILE],
    ])('[RS-13] a smaller limit holds for %s', async (_what, command) => {
      await using session = await door.create({ limits: { memory_mb: 96 } });
      expectMemoryEnd(await session.exec(command));
      await session.expectUsable();
      expect((await session.detail()).usage.memory_bytes).toBeLessThan(96 * MiB);
    });

    test('[RS-13] several processes share the limit', async () => {
      await using session = await door.create({ limits: { memory_mb: 96 } });
      const reply = await session.exec(`for i in 1 2 3 4 5 6; do ${take(30)} & done; wait`);
      expect(reply.limits_reached).toEqual(['memory']);
      await session.expectUsable();
    });

    test('[RS-13] commands beside it, and their output so far, live on', async () => {
      await using session = await door.create({ limits: { memory_mb: 96 } });
      const beside = await session.begin('echo begun; read line; echo "$line"');
      const reply = await session.exec(`echo before; ${take(300)}`);
      expectMemoryEnd(reply);
      expect(reply.stdout).toBe('before\n');
      await session.get('POST', `/execs/${beside}/stdin`, { data: 'still here\n' });
      expect(await session.result(beside)).toMatchObject({ ok: true });
      expect(await session.output(beside)).toBe('begun\nstill here\n');
    });
  });

  test('[RS-13] many busy processes get one CPU together', async () => {
    await using session = await door.create();
    const reply = await session.exec('for i in 1 2 3; do while (( SECONDS < 4 )); do :; done & done; wait');
    const share = reply.cpu_time_ms / reply.duration_ms;
    // Quotas are handed out by the tenth of a second, so a little more than the share may be used at the edges.
    expect(share).toBeLessThan(1.15);
    // It was really busy, whatever else this machine does meanwhile.
    expect(share).toBeGreaterThan(0.1);
    await session.expectUsable();
  });

  test('[RS-13] half a CPU is half a CPU', async () => {
    await using session = await door.create({ limits: { cpus: 0.5 } });
    const reply = await session.exec('for i in 1 2; do while (( SECONDS < 3 )); do :; done & done; wait');
    expect(reply.cpu_time_ms / reply.duration_ms).toBeLessThan(0.65);
  });

  test.each([
    ['limits.cpus', { limits: { cpus: 4.5 } }],
    ['limits.memory_mb', { limits: { memory_mb: 8193 } }],
    ['limits.disk_mb', { limits: { disk_mb: 8193 } }],
    ['limits.processes', { limits: { processes: 1025 } }],
    ['ttl_s', { ttl_s: 86_401 }],
  ])('[RS-13] nobody gets more than the operator grants: %s', async (field, request) => {
    const answer = await door.ask('POST', '', { project_id: 'p', runtime_type: 'shell', ...request });
    expect(answer).toMatchObject({ status: 422, body: { code: 'LIMIT_TOO_HIGH', field } });
    expect(await door.list()).toEqual([]);
  });

  test('[RS-13] nor longer for a command', async () => {
    await using session = await door.create();
    const answer = await session.ask('POST', '/exec', { command: 'true', timeout_s: 86_401 });
    expect(answer).toMatchObject({ status: 422, body: { code: 'LIMIT_TOO_HIGH', field: 'timeout_s' } });
    expect(await session.get('GET', '/execs')).toEqual({ execs: [] });
  });

  test('[RS-13] without a word about it there is no network', async () => {
    await using session = await door.create();
    expect(session.made.network).toEqual([]);
    expect(await session.egress()).toMatchObject({ enabled: false, hosts: [] });
    expect(await session.print("sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '")).toBe('lo\n');
    expect(await session.print('env | grep -ci proxy || true')).toBe('0\n');
    // Nobody listens, on any address.
    expect(await session.print('sed -s 1d /proc/net/tcp /proc/net/tcp6')).toBe('');
    for (const address of ['1.1.1.1', '169.254.169.254', '127.0.0.1']) {
      const { exit_code: code } = await session.exec(`timeout 5 bash -c 'exec 3<>/dev/tcp/${address}/80'`);
      expect(code).toBe(1);
    }
    const changed = await session.ask('PUT', '/egress', { allow: ['example.org'] });
    expect(changed).toMatchObject({ status: 422, body: { code: 'INVALID_REQUEST' } });
  });
});

function expectMemoryEnd(reply: Awaited<ReturnType<Hand['exec']>>): void {
  expect(reply).toMatchObject({
    ok: false,
    exit_code: 137,
    end: { reason: 'memory', signal: 'SIGKILL' },
    limits_reached: ['memory'],
  });
}

function readFromKernel(stateDirectory: string): Enforced {
  const [folder = ''] = globSync(`${stateDirectory}/lasting-*/cells/*`);
  const [instance = '', , id = ''] = folder.slice(stateDirectory.length + 1).split('/');
  const read = (controller: string, name: string): string => {
    const places = [`/sys/fs/cgroup/${controller}/hotcell`, '/sys/fs/cgroup/hotcell'];
    const files = places.map((place) => `${place}/${instance}/${id}/${name}`);
    return readFileSync(files.find((file) => existsSync(file)) ?? `no ${name}`, 'utf8').trim();
  };
  const isOld = existsSync('/sys/fs/cgroup/memory/hotcell');
  const [quota, period] = isOld
    ? [read('cpu', 'cpu.cfs_quota_us'), read('cpu', 'cpu.cfs_period_us')]
    : read('', 'cpu.max').split(' ');
  return {
    memoryBytes: Number(isOld ? read('memory', 'memory.limit_in_bytes') : read('', 'memory.max')),
    cpus: Number(quota) / Number(period),
    processes: Number(read('pids', 'pids.max')),
  };
}

async function readFromEngine(stateDirectory: string): Promise<Enforced> {
  const filters = encodeURIComponent(JSON.stringify({ label: ['hotcell.kind=session'] }));
  const containers = await engineApi().call<{ Id: string; Mounts: { Source?: string }[] }[]>(
    'GET',
    `/containers/json?filters=${filters}`,
  );
  // Other files of tests use the engine at the same time.
  const volumes = `${dataDirectoryOf(stateDirectory)}/volumes/`;
  const container = containers.find(({ Mounts }) => Mounts.some(({ Source }) => Source?.startsWith(volumes)));
  const { HostConfig } = await engineApi().call<{
    HostConfig: { Memory: number; NanoCpus: number; PidsLimit: number };
  }>('GET', `/containers/${container?.Id ?? ''}/json`);
  return {
    memoryBytes: HostConfig.Memory,
    cpus: HostConfig.NanoCpus / 1e9,
    processes: HostConfig.PidsLimit,
  };
}
