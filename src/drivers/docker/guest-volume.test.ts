import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeGuestVolume } from './guest-volume.ts';
import { ScriptedEngine } from './scripted-engine.double.ts';

const GUEST = fileURLToPath(new URL('../../../guest', import.meta.url));
const OPTIONS = { name: 'hotcell-abc', labels: { 'hotcell.owner': 'abc' }, image: 'lua:5', guest: GUEST };

let scripted: ScriptedEngine;
let bodies: Map<string, string>;
beforeEach(async () => {
  bodies = new Map();
  scripted = await ScriptedEngine.start((request, body) => {
    bodies.set(request.replace(/\?.*/, ''), body);
    return { body: { Id: 'c1' } };
  });
});
afterEach(() => scripted[Symbol.asyncDispose]());

/** The names of the files in an archive, by the headers of its entries. */
function namesIn(archive: string): string[] {
  const names: string[] = [];
  for (let at = 0; at < archive.length && archive[at] !== '\0';) {
    const [name = ''] = archive.slice(at, at + 100).split('\0');
    if (!name.endsWith('/')) names.push(name);
    const size = Number.parseInt(archive.slice(at + 124, at + 136), 8);
    at += 512 * (1 + Math.ceil(size / 512));
  }
  return names.toSorted();
}

test('[CX-12] every file that a cell needs is in the volume, and no test', async () => {
  await makeGuestVolume(await scripted.connect(), OPTIONS);
  const needed = globSync(['*.{sh,bash,pl,py}', '{bootstrap,lib,preload}/**/*.*'], { cwd: GUEST });
  const names = namesIn(bodies.get('PUT /containers/c1/archive') ?? '');
  expect(names).toEqual(needed.toSorted());
  expect(needed).toEqual(
    expect.arrayContaining(['agent.pl', 'lib/Agent/Wire.pm', 'session.bash', 'bootstrap/ruby.rb']),
  );
});

test('[CX-13, SC-02] the volume and the container that fills it are labelled as ours', async () => {
  await makeGuestVolume(await scripted.connect(), OPTIONS);
  expect(JSON.parse(bodies.get('POST /volumes/create') ?? '')).toEqual({
    Name: 'hotcell-abc',
    Labels: OPTIONS.labels,
  });
  expect(JSON.parse(bodies.get('POST /containers/create') ?? '')).toMatchObject({
    Image: 'lua:5',
    Labels: OPTIONS.labels,
    HostConfig: { NetworkMode: 'none', Binds: ['hotcell-abc:/opt/hotcell/guest'] },
  });
  expect(scripted.asked.some((request) => request.includes('/start'))).toBe(false);
});

test('[CX-08] the container is gone afterwards, also when the engine does not take the files', async () => {
  const engine = await scripted.connect();
  await makeGuestVolume(engine, OPTIONS);
  expect(scripted.asked.at(-1)).toBe('DELETE /containers/c1?force=true');
  scripted.script = (request) =>
    request.startsWith('PUT')
      ? { status: 500, body: { message: 'no space left on device' } }
      : { body: { Id: 'c2' } };
  await expect(makeGuestVolume(engine, OPTIONS)).rejects.toMatchObject({ words: 'no space left on device' });
  expect(scripted.asked.at(-1)).toBe('DELETE /containers/c2?force=true');
});
