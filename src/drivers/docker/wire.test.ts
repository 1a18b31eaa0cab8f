import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownerRecord } from '../process/owner.ts';
import { removeDeadWires, Wire, WIRE_FIFO } from './wire.ts';

let base = '';
let state = '';
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'hotcell-wire-'));
  state = join(base, 'state-docker');
});
afterEach(() => rmSync(base, { recursive: true }));

test('[FL-13] what was said is read to its end, also by whoever listens late', async () => {
  const wire = await Wire.make(state);
  let heard = '';
  appendFileSync(join(wire.folder, WIRE_FIFO), 'x'.repeat(60_000));
  await wire[Symbol.asyncDispose]();
  expect(readdirSync(state)).toEqual([]);
  wire.onData((bytes) => (heard += bytes.toString()));
  await wire.end();
  expect(heard.length).toBe(60_000);
  // Twice, and after the end.
  await wire.end();
  wire.close();
});

test('[FL-13] one that nobody ever opens comes to its end, too', async () => {
  const wire = await Wire.make(state);
  wire.onData(() => expect.unreachable());
  await wire.end();
  await wire[Symbol.asyncDispose]();
  expect(readdirSync(state)).toEqual([]);
});

test('[SC-02] those of processes that are dead are removed, and no others', async () => {
  await using wire = await Wire.make(state);
  const { pid } = spawnSync('true');
  const dead = join(state, '00ff00ff00ff');
  mkdirSync(join(dead, 'wire'), { recursive: true });
  const record = JSON.parse(await ownerRecord()) as Record<string, unknown>;
  writeFileSync(join(dead, 'owner.json'), JSON.stringify({ ...record, pid }));
  await removeDeadWires(state);
  expect([existsSync(dead), existsSync(wire.folder)]).toEqual([false, true]);
  wire.close();
});
