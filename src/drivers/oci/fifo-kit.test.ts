import { existsSync, lstatSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FIFO_NAMES, FifoKits, sealKit, toChannelMounts } from './fifo-kit.ts';

const US = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-kits-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('a kit', () => {
  test('[CX-12] has five FIFOs that any user may open once inside the folder', async () => {
    const kit = await new FifoKits(join(folder, 'kits')).take(US);
    for (const name of FIFO_NAMES) {
      const info = lstatSync(kit.path(name));
      expect({ name, fifo: info.isFIFO(), mode: info.mode & 0o777 }).toEqual({
        name,
        fifo: true,
        mode: 0o666,
      });
    }
  });

  test('[SC-03] lies in a folder that only its owner may enter', async () => {
    const kits = new FifoKits(join(folder, 'kits'));
    const { directory } = await kits.take(US);
    expect(lstatSync(directory).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(folder, 'kits')).mode & 0o777).toBe(0o711);
  });

  test.skipIf(US.uid !== 0)('[SC-03] belongs to the user of the cell', async () => {
    const { directory } = await new FifoKits(join(folder, 'kits')).take({ uid: 0x70000001, gid: 0x70000005 });
    const { uid, gid } = lstatSync(directory);
    expect({ uid, gid }).toEqual({ uid: 0x70000001, gid: 0x70000005 });
  });

  test.skipIf(US.uid !== 0)('[SC-03] given back it changes hands with the next cell', async () => {
    const kits = new FifoKits(join(folder, 'kits'));
    const kit = await kits.take({ uid: 0x70000001, gid: 0x70000001 });
    kits.giveBack(kit);
    const again = await kits.take({ uid: 0x70000003, gid: 0x70000003 });
    expect(again).toBe(kit);
    expect(lstatSync(again.directory).uid).toBe(0x70000003);
  });
});

describe('a kit of an agent', () => {
  test('[SC-03] is sealed: nobody who is not root may open a FIFO again', async () => {
    const kit = await new FifoKits(join(folder, 'kits')).take(US);
    await sealKit(kit);
    expect(FIFO_NAMES.map((name) => lstatSync(kit.path(name)).mode & 0o777)).toEqual([0, 0, 0, 0, 0]);
  });

  test('[SC-02] is thrown away with its log, and never given to anybody else', async () => {
    const kits = new FifoKits(join(folder, 'kits'));
    const kit = await kits.take(US);
    await sealKit(kit);
    await kits.discard(kit);
    expect([existsSync(kit.directory), existsSync(kit.log)]).toEqual([false, false]);
    const others = await Promise.all(Array.from({ length: 10 }, () => kits.take(US)));
    expect(others.map(({ directory }) => directory)).not.toContain(kit.directory);
  });
});

describe('kits', () => {
  test('[CX-12] nobody shares one, also when more are wanted at once than are made at once', async () => {
    const kits = new FifoKits(join(folder, 'kits'));
    const taken = await Promise.all(Array.from({ length: 20 }, () => kits.take(US)));
    expect(new Set(taken.map((kit) => kit.directory)).size).toBe(20);
  });

  test('[CX-08] a folder that cannot be made fails the taker, and the next one tries again', async () => {
    writeFileSync(join(folder, 'kits'), '');
    const kits = new FifoKits(join(folder, 'kits'));
    await expect(kits.take(US)).rejects.toThrow('EEXIST');
    rmSync(join(folder, 'kits'));
    await expect(kits.take(US)).resolves.toBeDefined();
  });
});

describe('mounts', () => {
  const kit = { directory: '/kits/0', log: '/kits/0.log', path: (name: string) => `/kits/0/${name}` };

  test('[SC-03] a plain runtime gets the folder, read-only', () => {
    expect(toChannelMounts(kit, '/run/hotcell', { ownKernel: false, lasting: true })).toEqual([
      { source: '/kits/0', destination: '/run/hotcell', writable: false },
    ]);
  });

  test('[SC-03] gVisor gets the FIFOs one by one, and never a folder to fill', () => {
    const mounts = toChannelMounts(kit, '/run/hotcell', { ownKernel: true, lasting: false });
    expect(mounts.map(({ destination }) => destination)).toEqual(
      FIFO_NAMES.map((name) => `/run/hotcell/${name}`),
    );
    expect(writableIn(mounts)).toEqual(['/kits/0/out', '/kits/0/err', '/kits/0/status']);
  });

  test('[RS-22] an agent that lasts can hold both ends of its input there, too', () => {
    const mounts = toChannelMounts(kit, '/run/hotcell', { ownKernel: true, lasting: true });
    expect(writableIn(mounts)).toEqual(['/kits/0/in', '/kits/0/out', '/kits/0/err', '/kits/0/status']);
  });
});

const writableIn = (mounts: ReturnType<typeof toChannelMounts>): string[] =>
  mounts.filter(({ writable }) => writable).map(({ source }) => source);
