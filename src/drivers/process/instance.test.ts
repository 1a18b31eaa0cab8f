import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deadInstances, openInstance } from './instance.ts';
import { ownerRecord } from './owner.ts';

const isRoot = process.geteuid?.() === 0;
const INSTANCE = '0123456789ab';
let folder = '';
let state = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-instance-'));
  chmodSync(folder, 0o711);
  state = join(folder, 'state');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What a server has left behind, with this record of its owner. */
function leave(owner: object | string): void {
  const pidNamespace = readlinkSync('/proc/self/ns/pid');
  const text = typeof owner === 'string' ? owner : JSON.stringify({ pidNamespace, ...owner });
  mkdirSync(join(state, INSTANCE), { recursive: true });
  writeFileSync(join(state, INSTANCE, 'owner.json'), text);
}

const dead = async (): Promise<string[]> => (await deadInstances(state)).map((instance) => instance.id);

function startTicksOf(pid: number): string {
  return (
    readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')[19] ?? ''
  );
}

describe('a living instance', () => {
  test('[SC-02] is not listed as dead', async () => {
    await openInstance(state);
    expect(await dead()).toEqual([]);
  });

  test('[SC-02] two in one state folder do not meet', async () => {
    const [one, other] = [await openInstance(state), await openInstance(state)];
    expect(one.directory).not.toBe(other.directory);
    expect(readdirSync(state).toSorted()).toEqual([one.id, other.id].toSorted());
  });

  test('[SC-02] of another process is left alone, too', async () => {
    const child = spawn('sleep', ['60']);
    try {
      await once(child, 'spawn');
      const pid = child.pid ?? 0;
      leave({ pid, startTicks: startTicksOf(pid) });
      expect(await dead()).toEqual([]);
    } finally {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
  });

  test('[SC-02] of another pid namespace cannot be judged from here', async () => {
    leave({ pid: 1, startTicks: '-', pidNamespace: 'pid:[1]' });
    expect(await dead()).toEqual([]);
  });

  test('[SC-03] its folder can be walked through, not listed; its record is read by nobody else', async () => {
    const { directory } = await openInstance(state);
    const modeOf = (path: string): number => lstatSync(path).mode & 0o777;
    expect([modeOf(state), modeOf(directory), modeOf(join(directory, 'owner.json'))]).toEqual([
      0o711, 0o711, 0o600,
    ]);
  });
});

describe('a dead instance', () => {
  test('[SC-02] is one whose process is gone', async () => {
    const { pid } = spawnSync('true');
    leave({ pid, startTicks: '1' });
    expect(await deadInstances(state)).toEqual([{ id: INSTANCE, directory: join(state, INSTANCE) }]);
  });

  test('[SC-02] is one whose pid has been given to somebody else', async () => {
    leave({ pid: process.pid, startTicks: String(Number(startTicksOf(process.pid)) - 1) });
    expect(await dead()).toEqual([INSTANCE]);
  });

  test('[SC-02] is one whose process is a zombie', async () => {
    // The shell becomes a program that never asks after its child, which waits for our line to end.
    const parent = spawn('sh', ['-c', 'exec 3<&0; head -n 1 <&3 >/dev/null & echo $!; exec sleep 60']);
    try {
      const [line] = (await once(parent.stdout, 'data')) as [Buffer];
      const pid = Number(line.toString());
      const startTicks = startTicksOf(pid);
      // A shell would ask.
      while (readFileSync(`/proc/${parent.pid}/comm`, 'utf8') !== 'sleep\n') await new Promise(setImmediate);
      parent.stdin.write('\n');
      while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) await new Promise(setImmediate);
      leave({ pid, startTicks });
      expect(await dead()).toEqual([INSTANCE]);
    } finally {
      parent.kill('SIGKILL');
      await once(parent, 'close');
    }
  });

  test.each([
    ['no JSON', '{'],
    ['something else', '"text"'],
    ['no start time', { pid: process.pid }],
    ['a process that cannot be', { pid: -1, startTicks: '1' }],
    ['a path instead of a pid', { pid: '../self', startTicks: '1' }],
  ])('[SC-02] is one whose record is %s', async (_what, owner) => {
    leave(owner);
    expect(await dead()).toEqual([INSTANCE]);
  });

  test('[SC-02] a state folder that is not there has none', async () => {
    expect(await dead()).toEqual([]);
  });
});

describe('an unfinished instance', () => {
  const UNFINISHED = '.new-0123456789ab';
  const leaveUnfinished = (record: string): string => {
    const path = join(
      state,
      `${UNFINISHED}${record === '' ? '' : '-'}${Buffer.from(record).toString('base64url')}`,
    );
    mkdirSync(path, { recursive: true });
    return path;
  };

  test('[SC-02] whose maker lives may still be finished', async () => {
    const path = leaveUnfinished(await ownerRecord());
    expect(await dead()).toEqual([]);
    expect(existsSync(path)).toBe(true);
  });

  test('[SC-02] whose maker is dead is removed, and so is one of an earlier version', async () => {
    const record = JSON.parse(await ownerRecord()) as object;
    const paths = [leaveUnfinished(JSON.stringify({ ...record, startTicks: '1' })), leaveUnfinished('')];
    expect(await dead()).toEqual([]);
    expect(paths.filter((path) => existsSync(path))).toEqual([]);
  });

  test('[SC-02] is what a maker leaves that is killed at any moment, and nothing is left of it', async () => {
    const module = JSON.stringify(new URL('instance.ts', import.meta.url).pathname);
    const script = `import { openInstance } from ${module}; console.log('up'); for (;;) await openInstance(process.argv[1])`;
    for (let round = 0; round < 8; round++) {
      const maker = spawn(process.execPath, ['--input-type=module', '-e', script, state]);
      await once(maker.stdout, 'data');
      while (!existsSync(state) || readdirSync(state).length < 10 * round) await new Promise(setImmediate);
      maker.kill('SIGKILL');
      await once(maker, 'close');
      for (const { directory } of await deadInstances(state)) rmSync(directory, { recursive: true });
      expect(readdirSync(state)).toEqual([]);
    }
  });
});

describe('what is not ours', () => {
  test('[SC-02] a folder that only begins like an unfinished instance is left alone', async () => {
    mkdirSync(join(state, '.new-documents'), { recursive: true });
    utimesSync(join(state, '.new-documents'), 0, 0);
    await deadInstances(state);
    expect(existsSync(join(state, '.new-documents'))).toBe(true);
  });

  test.each(['documents', 'notes.txt', '.ssh'])(
    '[SC-02] %s in the state folder is no instance',
    async (name) => {
      mkdirSync(join(state, name), { recursive: true });
      expect(await dead()).toEqual([]);
    },
  );

  test('[SC-02] a link in place of the state folder is not followed', async () => {
    mkdirSync(join(folder, 'home'));
    symlinkSync(join(folder, 'home'), state);
    leave({ pid: 1, startTicks: '-' });
    expect(await dead()).toEqual([]);
  });

  test.skipIf(!isRoot)('[SC-03] a state folder of somebody else is refused', async () => {
    mkdirSync(state, { mode: 0o711 });
    chownSync(state, 65534, 65534);
    await expect(openInstance(state)).rejects.toMatchObject({ code: 'DRIVER_UNAVAILABLE' });
  });

  test.each([0o777, 0o1777, 0o731])('[SC-03] a state folder with mode %o is refused', async (mode) => {
    mkdirSync(state);
    chmodSync(state, mode);
    await expect(openInstance(state)).rejects.toThrow('can be written by others');
    expect(readdirSync(state)).toEqual([]);
  });

  test('[SC-03] a link is refused as state folder', async () => {
    mkdirSync(join(folder, 'elsewhere'));
    symlinkSync(join(folder, 'elsewhere'), state);
    await expect(openInstance(state)).rejects.toThrow('belongs to somebody else');
  });

  test.skipIf(!isRoot)(
    '[SC-03] a folder above that cells cannot get through is named, with the way out',
    async () => {
      chmodSync(folder, 0o700);
      await expect(openInstance(state)).rejects.toMatchObject({
        message: expect.stringContaining(folder) as unknown,
        hint: expect.stringContaining(`chmod o+x ${folder}`) as unknown,
      });
    },
  );
});
