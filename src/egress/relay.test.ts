import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { SILENT_LOG } from '../core/log.ts';
import { WINDOW_BYTES } from './cell-connection.ts';
import { MOST_CONNECTIONS, Relay } from './relay.ts';
import { ScriptedCell } from './scripted-cell.double.ts';

const KiB = 1024;

function start(): { cell: ScriptedCell; relay: Relay; accepted: Duplex[]; running: Promise<void> } {
  const cell = new ScriptedCell();
  const accepted: Duplex[] = [];
  const relay = new Relay({
    exec: cell,
    log: SILENT_LOG,
    onReady: () => {},
    accept: (connection) => void accepted.push(connection),
  });
  return { cell, relay, accepted, running: relay.run() };
}

async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 100_000) throw new Error('it never came to that');
    await turn();
  }
}

const credit = (bytes: number): Buffer => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return payload;
};

describe('a connection of a cell', () => {
  test('[RS-15] carries bytes both ways, and each way ends by itself', async () => {
    const { cell, accepted, running } = start();
    cell.say('N', 1);
    cell.say('D', 1, Buffer.from('ask'));
    cell.say('E', 1);
    await until(() => accepted.length === 1);
    const [connection] = accepted;
    const read = (await connection?.toArray()) as Buffer[];
    expect(Buffer.concat(read).toString()).toBe('ask');
    expect(connection?.destroyed).toBe(false);
    connection?.end('answer');
    await until(() => cell.heard('E', 1).length === 1);
    expect(cell.frames.map(({ type, payload }) => type + Buffer.from(payload).toString())).toEqual([
      'Danswer',
      'E',
    ]);
    await until(() => connection?.destroyed === true);
    expect(cell.heard('X', 1)).toEqual([]);
    cell.exit();
    await running;
  });

  test('[RS-15] sends no more than the cell has room for', async () => {
    const { cell, accepted, running } = start();
    const sent = (id: number): number =>
      cell.heard('D', id).reduce((sum, { payload }) => sum + payload.length, 0);
    cell.say('N', 1);
    cell.say('N', 2);
    await until(() => accepted.length === 2);
    const bytes = randomBytes(3 * WINDOW_BYTES);
    accepted[0]?.end(bytes);
    await until(() => sent(1) === WINDOW_BYTES);
    // The other one does not wait.
    accepted[1]?.end('x');
    await until(() => sent(2) === 1);
    expect(sent(1)).toBe(WINDOW_BYTES);
    cell.say('C', 1, credit(50 * KiB));
    await until(() => sent(1) === WINDOW_BYTES + 50 * KiB);
    cell.say('C', 1, credit(WINDOW_BYTES));
    await until(() => sent(1) === 2 * WINDOW_BYTES + 50 * KiB);
    expect(cell.heard('E', 1)).toEqual([]);
    cell.say('C', 1, credit(WINDOW_BYTES));
    await until(() => cell.heard('E', 1).length === 1);
    expect(Buffer.concat(cell.heard('D', 1).map(({ payload }) => payload)).equals(bytes)).toBe(true);
    cell.exit();
    await running;
  });

  test('[RS-15] gives the cell credit only for what was read', async () => {
    const { cell, accepted, running } = start();
    const granted = (): number =>
      cell.heard('C', 1).reduce((sum, { payload }) => sum + Buffer.from(payload).readUInt32BE(), 0);
    cell.say('N', 1);
    for (let sent = 0; sent < WINDOW_BYTES; sent += 16 * KiB) cell.say('D', 1, Buffer.alloc(16 * KiB));
    await until(() => accepted.length === 1);
    await turn();
    // Nobody reads, so nothing has been paid for.
    expect(granted()).toBe(0);
    const [connection] = accepted;
    expect(connection?.readableLength).toBeLessThanOrEqual(WINDOW_BYTES);
    connection?.resume();
    await until(() => granted() === WINDOW_BYTES);
    cell.exit();
    await running;
  });

  test('[RS-15] that we end is reset in the cell, and one that is reset there ends here', async () => {
    const { cell, accepted, running } = start();
    cell.say('N', 1);
    cell.say('N', 2);
    await until(() => accepted.length === 2);
    accepted[0]?.destroy();
    cell.say('X', 2);
    await until(() => cell.heard('X', 1).length === 1 && accepted[1]?.destroyed === true);
    expect(cell.heard('X', 2)).toEqual([]);
    // What was under way is no error.
    cell.say('D', 1, Buffer.from('late'));
    cell.say('C', 1, credit(1));
    cell.say('E', 2);
    cell.say('N', 3);
    await until(() => accepted.length === 3);
    cell.exit();
    await running;
    expect(accepted[2]?.destroyed).toBe(true);
  });
});

describe('a hostile relay', () => {
  const opened = (cell: ScriptedCell): void => cell.say('N', 1);

  test.each<[string, (cell: ScriptedCell) => void]>([
    ['garbage', (cell) => cell.sayBytes(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))],
    ['a type that there is none of', (cell) => cell.say('?', 1)],
    [
      'a frame of four gigabytes',
      (cell) => cell.sayBytes(Buffer.from('D\0\0\0\x01\xff\xff\xff\xff', 'latin1')),
    ],
    [
      'more than it has credit for',
      (cell) => {
        for (let sent = 0; sent <= WINDOW_BYTES; sent += 16 * KiB) cell.say('D', 1, Buffer.alloc(16 * KiB));
      },
    ],
    [
      'a window full of single bytes',
      (cell) => {
        for (let sent = 0; sent <= WINDOW_BYTES / 512; sent++) cell.say('D', 1, Buffer.alloc(1));
      },
    ],
    [
      'a window full of nothing',
      (cell) => {
        for (let sent = 0; sent <= WINDOW_BYTES / 512; sent++) cell.say('D', 1);
      },
    ],
    ['credit that nobody has used', (cell) => cell.say('C', 1, credit(1))],
    ['credit of the wrong length', (cell) => cell.say('C', 1, Buffer.alloc(3))],
    ['a number twice', (cell) => cell.say('N', 1)],
    ['a number that is lower', (cell) => cell.say('N', 0)],
    [
      'bytes after the last ones',
      (cell) => {
        cell.say('E', 1);
        cell.say('D', 1, Buffer.alloc(1));
      },
    ],
  ])('[RS-15] that sends %s is ended, with its connections', async (_what, attack) => {
    const { cell, accepted, running } = start();
    opened(cell);
    await until(() => accepted.length === 1);
    attack(cell);
    await running;
    await until(() => cell.killed);
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([true]);
  });

  test('[RS-15] of noise ends itself and throws nothing', async () => {
    for (let round = 0; round < 50; round++) {
      const { cell, running } = start();
      for (let piece = 0; piece < 20; piece++) cell.sayBytes(randomBytes(200));
      await until(() => cell.killed);
      await running;
    }
  });

  test('[RS-15] gets no more connections at once than there may be', async () => {
    const { cell, accepted, running } = start();
    for (let id = 1; id <= MOST_CONNECTIONS + 10; id++) cell.say('N', id);
    await until(() => cell.frames.length === 10);
    expect(accepted.length).toBe(MOST_CONNECTIONS);
    expect(cell.frames.map(({ type, id }) => type + id)).toContain(`X${MOST_CONNECTIONS + 1}`);
    // There is room again when one has gone.
    await new Promise<void>((resolve) => accepted[0]?.once('close', resolve).destroy());
    cell.say('N', 1000);
    await until(() => accepted.length === MOST_CONNECTIONS + 1);
    cell.exit();
    await running;
  });
});

describe('a relay', () => {
  test('[RS-15] ends its program and its connections when it is closed', async () => {
    const { cell, relay, accepted, running } = start();
    cell.say('N', 1);
    await until(() => accepted.length === 1);
    relay.close();
    await running;
    expect(cell.stdinClosed).toBe(true);
    expect(accepted[0]?.destroyed).toBe(true);
  });

  test('[RS-15] whose cell is lost just ends', async () => {
    const { cell, accepted, running } = start();
    cell.say('N', 1);
    await until(() => accepted.length === 1);
    cell.lose(new Error('gone'));
    await running;
    expect(accepted[0]?.destroyed).toBe(true);
  });
});
