import { randomUUID } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Cell, CellOwner, CellSpec } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import { isRoot } from '../support/needs.ts';
import { waitFor } from '../support/leftovers.ts';
import { MiB, bash, finish, python, readLine, specOf, survivors, type Subject } from './cells.ts';

/** Two ids that nobody has, and that are not the same. Without root there are only our own. */
export const WORKER_OWNER: CellOwner = isRoot
  ? { uid: 0x70000a01, gid: 0x70000b03 }
  : { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };

/** Folders of the host as a fleet has them for one worker, and something beside them that is no business of its. */
class Place {
  readonly base = mkdtempSync(join(tmpdir(), 'hotcell-worker-'));
  readonly tree = join(this.base, 'tree');
  readonly git = join(this.base, 'git');
  readonly pointer = join(this.base, 'pointer');
  readonly secret = join(this.base, 'secret');

  constructor() {
    // gVisor looks for what it mounts with the rights of the cell's user.
    chmodSync(this.base, 0o711);
    for (const folder of [this.tree, this.git]) mkdirSync(folder);
    writeFileSync(join(this.tree, '.git'), 'gitdir: /of/the/host\n');
    writeFileSync(join(this.tree, 'file'), 'of the host\n');
    writeFileSync(this.pointer, 'gitdir: /git\n', { mode: 0o666 });
    writeFileSync(this.secret, 'of the host alone\n', { mode: 0o644 });
    symlinkSync(this.secret, join(this.tree, 'absolute'));
    symlinkSync('../secret', join(this.tree, 'relative'));
    const given = ['tree', 'tree/.git', 'tree/file', 'git'].map((name) => join(this.base, name));
    if (isRoot) for (const path of given) chownSync(path, WORKER_OWNER.uid, WORKER_OWNER.gid);
  }

  spec(changes: Partial<CellSpec> = {}): CellSpec {
    return {
      ...specOf(undefined, { memoryBytes: 512 * MiB, processes: 256 }),
      kind: 'worker',
      owner: WORKER_OWNER,
      folders: [
        { name: 'work', folder: this.tree, at: '/workspace', writable: true },
        { name: 'pointer', folder: this.pointer, at: '/workspace/.git' },
        { name: 'git', folder: this.git, at: '/git', writable: true },
      ],
      ...changes,
    };
  }
}

async function inWorker(
  driver: Driver,
  check: (cell: Cell, place: Place) => Promise<void>,
  changes: Partial<CellSpec> = {},
): Promise<void> {
  const place = new Place();
  try {
    const cell = await driver.create(place.spec(changes));
    try {
      await check(cell, place);
    } finally {
      await cell.dispose();
    }
  } finally {
    rmSync(place.base, { recursive: true });
  }
}

async function run(cell: Cell, script: string): Promise<string> {
  const exec = await cell.exec({ ...bash(script), folder: 'work' });
  exec.closeStdin();
  const { stdout, stderr } = await finish(exec);
  return stdout + stderr;
}

/** Says which of these did something to the file. */
const TAMPER = python(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def umount():
  if libc.umount2(b"/workspace/.git", 2) != 0: raise OSError()
attempts = dict(
  write=lambda: open(".git", "w"), append=lambda: open(".git", "a"), cut=lambda: os.truncate(".git", 0),
  remove=lambda: os.unlink(".git"), mode=lambda: os.chmod(".git", 0o777), umount=umount,
  away=lambda: os.rename(".git", "moved"), over=lambda: os.replace("other", ".git"),
  above=lambda: os.rename("/workspace", "/moved"), link=lambda: os.link("other", ".git"))
open("other", "w").write("of the cell")
for name, attempt in attempts.items():
  try:
    attempt()
    print(name)
  except OSError: pass
print(open(".git").read(), end="")`);

/** What a driver must do for a cell that works in folders of the host. */
export const WORKERS = {
  'a command begins in the folder that it names': async ({ driver }: Subject) => {
    const folder = mkdtempSync(join(tmpdir(), 'hotcell-begin-'));
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, 'here'), 'here\n');
    const cell = await driver.create({
      ...specOf(undefined),
      folders: [{ name: 'data', folder, at: '/data' }],
    });
    try {
      const exec = await cell.exec({ ...bash('cat here'), folder: 'data' });
      exec.closeStdin();
      expect(await finish(exec)).toMatchObject({ stdout: 'here\n', outcome: { kind: 'exited', code: 0 } });
      await expect(cell.exec({ ...bash('pwd'), folder: 'none' })).rejects.toMatchObject({ code: 'INTERNAL' });
    } finally {
      await cell.dispose();
      rmSync(folder, { recursive: true });
    }
  },
  'terminate asks every process of a command to end': async ({ driver }: Subject) => {
    const marker = `asked-${randomUUID()}`;
    const cell = await driver.create(specOf(undefined));
    // The first process does not pass anything on, and its child has left its session. It waits twice, for a signal
    // ends the first wait; a signal that comes before has left the child to the first one.
    const script = `trap 'echo first' TERM; setsid bash -c 'trap "echo child; exit" TERM; echo up; exec 0<&-; while :; do sleep 0.1; done' ${marker} & wait; wait; exit 3`;
    const exec = await cell.exec(bash(script));
    await readLine(exec);
    exec.terminate?.();
    const { stdout, outcome } = await finish(exec);
    await cell.dispose();
    expect(stdout.split('\n').toSorted()).toEqual(['', 'child', 'first']);
    expect(outcome).toEqual({ kind: 'exited', code: 3 });
    await waitFor('nothing of it is left', () => survivors(marker).length === 0);
  },
  'two cells may ask for one name': async ({ driver }: Subject) => {
    const name = `contract-worker-${randomUUID().slice(0, 6)}-0`;
    const cells = [await driver.create({ ...specOf(undefined), name })];
    try {
      cells.push(await driver.create({ ...specOf(undefined), name }));
      expect(new Set(cells.map(({ id }) => id)).size).toBe(2);
      for (const cell of cells) {
        expect(cell.name.startsWith(name)).toBe(true);
        const exec = await cell.exec(bash('echo alive'));
        exec.closeStdin();
        expect((await finish(exec)).stdout).toBe('alive\n');
      }
    } finally {
      for (const cell of cells) await cell.dispose();
    }
  },
  'a worker writes to folders of the host as their owner': ({ driver }: Subject) =>
    inWorker(driver, async (cell, place) => {
      const said = await run(
        cell,
        'cat file && echo more >>file && mkdir -p a/b && echo new >a/b/new && echo x >/git/HEAD; pwd',
      );
      expect(said).toBe('of the host\n/workspace\n');
      expect(readFileSync(join(place.tree, 'file'), 'utf8')).toBe('of the host\nmore\n');
      for (const path of ['tree/a', 'tree/a/b/new', 'git/HEAD']) {
        const { uid, gid } = lstatSync(join(place.base, path));
        expect({ path, uid, gid }).toEqual({ path, ...WORKER_OWNER });
      }
      // The other way, while the cell lives.
      writeFileSync(join(place.tree, 'later'), 'later\n');
      writeFileSync(join(place.tree, 'file'), 'changed\n');
      expect(await run(cell, 'cat later file; [ -O a ] && echo mine')).toBe('later\nchanged\nmine\n');
      rmSync(join(place.tree, 'later'));
      expect(await run(cell, '[ -e later ] || echo gone')).toBe('gone\n');
    }),
  'what is written last is there when a worker was killed': ({ driver }: Subject) =>
    inWorker(driver, async (cell, place) => {
      const exec = await cell.exec({
        ...bash('head -c 300000 /dev/zero >late; echo done; sleep 1000'),
        folder: 'work',
      });
      await readLine(exec);
      await cell.dispose();
      expect(lstatSync(join(place.tree, 'late')).size).toBe(300_000);
    }),
  'a file that is mounted over another stays there, and so does the one below': ({ driver }: Subject) =>
    inWorker(driver, async (cell, place) => {
      const before = lstatSync(join(place.tree, '.git'));
      const exec = await cell.exec({ ...TAMPER, folder: 'work' });
      exec.closeStdin();
      expect(await finish(exec)).toMatchObject({ stdout: 'gitdir: /git\n', stderr: '' });
      expect(readFileSync(place.pointer, 'utf8')).toBe('gitdir: /git\n');
      await cell.dispose();
      const { ino, mode, mtimeMs, uid } = lstatSync(join(place.tree, '.git'));
      expect({ ino, mode, mtimeMs, uid }).toMatchObject({
        ino: before.ino,
        mode: before.mode,
        mtimeMs: before.mtimeMs,
        uid: before.uid,
      });
      expect(readFileSync(join(place.tree, '.git'), 'utf8')).toBe('gitdir: /of/the/host\n');
    }),
  'nothing is made in a folder of the host to mount something on': async ({ driver }: Subject) => {
    const place = new Place();
    try {
      rmSync(join(place.tree, '.git'));
      await expect(driver.create(place.spec())).rejects.toMatchObject({ code: 'CELL_START_FAILED' });
      expect(lstatSync(join(place.tree, '.git'), { throwIfNoEntry: false })).toBeUndefined();
    } finally {
      rmSync(place.base, { recursive: true });
    }
  },
  'a worker is not root, has no capability and sees nothing else of the host': ({ driver }: Subject) =>
    inWorker(driver, async (cell, place) => {
      const ids = await run(cell, 'id -u; id -g; grep -E "^(CapEff|CapBnd|CapPrm):" /proc/self/status');
      const [uid, gid, ...capabilities] = ids.trim().split('\n');
      const inside = [1000, WORKER_OWNER.uid];
      expect(inside).toContain(Number(uid));
      expect([1000, WORKER_OWNER.gid]).toContain(Number(gid));
      expect(capabilities).toHaveLength(3);
      for (const line of capabilities) expect(line).toMatch(/^Cap\w+:\s+0{16}$/);
      const look = `cat absolute relative ../secret ${place.secret} 2>/dev/null; ls ${place.base} 2>/dev/null; true`;
      expect(await run(cell, look)).toBe('');
      const attempts = '/x /etc/x /usr/x /opt/x /git/../x /run/x';
      const write = `for f in ${attempts}; do (echo hi >$f) 2>/dev/null && echo wrote $f; done; true`;
      expect(await run(cell, write)).toBe('');
    }),
  'the folders that a worker writes to honour no set-user-id and no devices': ({ driver }: Subject) =>
    inWorker(driver, async (cell) => {
      const mounts = await run(cell, `grep -E ' (/workspace|/git) ' /proc/self/mountinfo`);
      expect(mounts.trim().split('\n')).toEqual([
        expect.stringMatching(/^(\S+ ){5}rw,nosuid,nodev/),
        expect.stringMatching(/^(\S+ ){5}rw,nosuid,nodev/),
      ]);
    }),
  'a worker that would be root is refused': async ({ driver }: Subject) => {
    const place = new Place();
    try {
      for (const owner of [
        { ...WORKER_OWNER, uid: 0 },
        { ...WORKER_OWNER, gid: 0 },
      ]) {
        await expect(driver.create(place.spec({ owner }))).rejects.toMatchObject({
          code: 'POLICY_UNENFORCEABLE',
        });
      }
    } finally {
      rmSync(place.base, { recursive: true });
    }
  },
  'the tools of an agent run in a worker, and it has terminals': ({ driver }: Subject) =>
    inWorker(
      driver,
      async (cell) => {
        const tools = [
          'set -e',
          'git init -q repo; cd repo; echo x >file; git add file',
          'git -c user.name=a -c user.email=b commit -qm one; git log --format=%s',
          `node -e 'require("fs").writeFileSync(require("os").homedir() + "/home", "")'; [ -f "$HOME/home" ]`,
          'npm --version >/dev/null; python3 -c "print(2)"',
        ];
        expect(await run(cell, tools.join('\n'))).toBe('one\n2\n');
        const exec = await cell.exec({ ...bash('tty'), terminal: { rows: 24, columns: 80 }, folder: 'work' });
        expect((await finish(exec)).stdout).toMatch(/^\/dev\/pts\/\d+\r\n$/);
      },
      { limits: { ...specOf(undefined).limits, memoryBytes: 1024 * MiB, processes: 256 } },
    ),
} satisfies Record<string, (subject: Subject) => Promise<void>>;
