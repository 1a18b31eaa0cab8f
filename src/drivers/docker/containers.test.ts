import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import {
  readUsage,
  removeContainer,
  removeOrphans,
  removeOwn,
  removeVolume,
  toCellError,
  wasOutOfMemory,
} from './containers.ts';
import { EngineRefusal, type Engine } from './engine.ts';
import { toOwnerLabels, type Labels } from '../engine/owner-labels.ts';
import { ScriptedEngine, type EngineScript, type ScriptedAnswer } from './scripted-engine.double.ts';

let scripted: ScriptedEngine;
let engine: Engine;
beforeEach(async () => {
  scripted = await ScriptedEngine.start(() => ({ status: 204 }));
  engine = await scripted.connect();
});
afterEach(() => scripted[Symbol.asyncDispose]());

const REMOVE = 'DELETE /containers/abc?force=true&v=true';
const refuse = (status: number, message: string): ScriptedAnswer => ({ status, body: { message } });

/** These answers one after the other, and the last one for ever. */
function inTurn(...answers: readonly [...ScriptedAnswer[], ScriptedAnswer]): EngineScript {
  const left = [...answers];
  return () => (left.length > 1 ? left.shift() : left[0]) ?? 'hang';
}

test('[RS-22] the figures of a container that is gone: the cell is lost, which is no defect of ours', async () => {
  scripted.script = () => refuse(404, 'No such container: abc');
  await expect(readUsage(engine, 'abc')).rejects.toMatchObject({ code: 'CELL_LOST' });
});

describe('the removal of a container', () => {
  test('[CX-18] is by force, with its nameless volumes', async () => {
    await removeContainer(engine, 'abc');
    expect(scripted.asked).toEqual([REMOVE]);
  });

  test('[CX-18] of one that is not there is done', async () => {
    scripted.script = () => refuse(404, 'No such container: abc');
    await removeContainer(engine, 'abc');
    expect(scripted.asked).toEqual([REMOVE]);
  });

  test('[CX-18] that is in progress already is waited for', async () => {
    const busy = refuse(409, 'removal of container abc is already in progress');
    scripted.script = inTurn(busy, busy, refuse(404, 'No such container: abc'));
    await removeContainer(engine, 'abc');
    expect(scripted.asked).toEqual([REMOVE, REMOVE, REMOVE]);
  });

  test('[CX-08] that the engine refuses is an error', async () => {
    scripted.script = () => refuse(500, 'device or resource busy');
    await expect(removeContainer(engine, 'abc')).rejects.toMatchObject({ status: 500 });
    expect(scripted.asked).toEqual([REMOVE]);
  });

  test('[CX-08] by an engine that is gone is an error', async () => {
    await scripted.stop();
    await expect(removeContainer(engine, 'abc')).rejects.toMatchObject({ code: 'DRIVER_UNAVAILABLE' });
  });
});

describe('the removal of a volume', () => {
  test('[CX-18] of one that is not there is done; what is in use is an error', async () => {
    await removeVolume(engine, 'v');
    scripted.script = inTurn(refuse(404, 'no such volume'), refuse(409, 'volume is in use'));
    await removeVolume(engine, 'v');
    await expect(removeVolume(engine, 'v')).rejects.toMatchObject({ status: 409 });
    expect(scripted.asked).toEqual(['DELETE /volumes/v', 'DELETE /volumes/v', 'DELETE /volumes/v']);
  });
});

describe('orphans', () => {
  const deadLabels = async (): Promise<Labels> => {
    const labels = await toOwnerLabels('dead');
    const record = JSON.parse(labels['hotcell.process'] ?? '') as object;
    return { ...labels, 'hotcell.process': JSON.stringify({ ...record, pid: spawnSync('true').pid }) };
  };

  test('[SC-02] are those whose maker is dead; containers go before the volumes that they use', async () => {
    const [dead, living] = [await deadLabels(), await toOwnerLabels('living')];
    const id = (letter: string): string => letter.repeat(64);
    scripted.script = (request) => {
      if (request.startsWith('GET /containers')) {
        return {
          body: [
            { Id: id('a'), Labels: dead },
            { Id: id('b'), Labels: living },
            { Id: id('c'), Labels: { 'hotcell.owner': 'unreadable' } },
          ],
        };
      }
      if (!request.startsWith('GET /volumes')) return { status: 204 };
      const Volumes = [
        { Name: 'hotcell-dead', Labels: dead },
        { Name: 'hotcell-living', Labels: living },
      ];
      return { body: { Volumes } };
    };
    expect(await removeOrphans(engine)).toEqual(['aaaaaaaaaaaa']);
    expect(scripted.asked.filter((request) => request.startsWith('DELETE'))).toEqual([
      `DELETE /containers/${id('a')}?force=true&v=true`,
      'DELETE /volumes/hotcell-dead',
    ]);
  });

  test('[SC-02] that cannot be removed now keep nobody from serving', async () => {
    const isRemoval = (request: string): boolean => request.startsWith('DELETE');
    const Labels = await deadLabels();
    scripted.script = (request) => {
      if (isRemoval(request)) return refuse(500, 'device or resource busy');
      const isContainers = request.startsWith('GET /containers');
      return { body: isContainers ? [{ Id: 'abc', Labels }] : { Volumes: [{ Name: 'v', Labels }] } };
    };
    expect(await removeOrphans(engine)).toEqual([]);
    expect(scripted.asked.filter(isRemoval)).toHaveLength(2);
  });

  test('[SC-02] are looked for among all of ours, also those that have stopped', async () => {
    scripted.script = (request) => ({ body: request.startsWith('GET /containers') ? [] : { Volumes: null } });
    expect(await removeOrphans(engine)).toEqual([]);
    const filters = encodeURIComponent(JSON.stringify({ label: ['hotcell.owner'] }));
    expect(scripted.asked).toEqual([
      `GET /containers/json?all=true&filters=${filters}`,
      `GET /volumes?filters=${filters}`,
    ]);
  });
});

describe('a container that has ended', () => {
  test('[CX-09] for want of memory', async () => {
    scripted.script = () => ({ body: { State: { OOMKilled: true } } });
    expect(await wasOutOfMemory(engine, 'abc')).toBe(true);
    expect(scripted.asked).toEqual(['GET /containers/abc/json']);
  });

  test('[CX-09] for want of memory, though the engine takes a while to know', async () => {
    const state = (OOMKilled: boolean): ScriptedAnswer => ({ body: { State: { OOMKilled } } });
    scripted.script = inTurn(state(false), state(false), state(true));
    expect(await wasOutOfMemory(engine, 'abc')).toBe(true);
  });

  test('[CX-09] for another reason is not asked about for ever', async () => {
    scripted.script = () => ({ body: { State: { OOMKilled: false } } });
    expect(await wasOutOfMemory(engine, 'abc')).toBe(false);
  });

  test('[CX-09] and is gone cannot be asked', async () => {
    scripted.script = () => refuse(404, 'No such container: abc');
    expect(await wasOutOfMemory(engine, 'abc')).toBe(false);
    await scripted.stop();
    expect(await wasOutOfMemory(engine, 'abc')).toBe(false);
  });
});

test('[CX-18, SC-02] what was made with our labels goes, also what we never heard of', async () => {
  const labels = await toOwnerLabels('0123');
  scripted.script = (request) => (request.startsWith('GET') ? { body: [{ Id: 'late' }] } : { status: 204 });
  await removeOwn(engine, labels);
  const [list = '', ...removals] = scripted.asked;
  expect(decodeURIComponent(list)).toContain('"hotcell.owner=0123"');
  expect(removals).toEqual(['DELETE /containers/late?force=true&v=true']);
});

describe('what an engine says of a cell that does not start', () => {
  const errorOf = (words: string): unknown =>
    toCellError(new EngineRefusal('start a container', 500, words), 'cell', 'lua:5');

  test.each([
    'mkdir /var/lib/docker/overlay2/x: no space left on device',
    'write /var/lib/docker/x: disk quota exceeded',
    'Error: No Space Left On Device',
  ])('[CX-08] %s: the disk of the engine is full', (words) => {
    const error = errorOf(words);
    expect(error).toMatchObject({
      code: 'DRIVER_UNAVAILABLE',
      cause: expect.any(EngineRefusal) as EngineRefusal,
    });
    expect((error as HotcellError).message).toContain("cell cell did not start: the engine's disk is full");
    expect((error as HotcellError).hint).toContain('docker system prune');
  });

  test.each([
    'container init was OOM-killed (memory limit too low?): unknown',
    'OCI runtime create failed: container_linux.go: OOM killed',
    'Minimum memory limit allowed is 6MB',
  ])('[CX-07] %s: memory_mb is too low', (words) => {
    expect(errorOf(words)).toMatchObject({ code: 'LIMIT_TOO_LOW', status: 422, field: 'memory_mb' });
  });

  test.each([
    'OCI runtime create failed: exec: "perl": executable file not found in $PATH: unknown',
    'crun: executable file `perl` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found',
    'starting container process caused: exec: "perl": stat /usr/bin/perl: no such file or directory',
  ])('[CX-11] %s: the image has no perl', (words) => {
    const error = errorOf(words);
    expect(error).toMatchObject({
      code: 'CELL_START_FAILED',
      message: 'image lua:5 has no perl, which the agent of a cell needs',
    });
    expect((error as HotcellError).hint).toContain('hotcell build');
  });

  test('[CX-08] anything else is told in its words', () => {
    expect(errorOf('failed to create shim task')).toMatchObject({
      code: 'CELL_START_FAILED',
      message: 'cell cell did not start: failed to create shim task',
    });
  });

  test('[CX-08] what is no refusal passes as it is', () => {
    const error = new HotcellError('DRIVER_UNAVAILABLE', 'away');
    expect(toCellError(error, 'cell', 'lua:5')).toBe(error);
  });
});
