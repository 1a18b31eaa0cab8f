import { spawnSync } from 'node:child_process';
import { chmodSync, globSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import { findTraces } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';
import { Nobody, whyNoNobody } from '../support/nobody.ts';

const nobody = new Nobody();
afterAll(() => nobody[Symbol.dispose]());

interface Told {
  readonly told: readonly string[];
  readonly said: readonly string[];
  readonly left: readonly string[];
}

/** With few more descriptors than a cell may have, so that they are soon used up. Fails unless it comes to its end and exits by itself. */
function run(task: 'locked' | 'exhausted' | 'reclaim'): Told {
  const command = nobody.command('test/contract/rootless-removal-child.ts');
  const { stdout, stderr, status } = spawnSync(
    'sh',
    ['-c', 'ulimit -n 2048; exec "$@"', 'sh', ...command, nobody.state, task],
    { encoding: 'utf8', timeout: 60_000, env: nobody.env, cwd: '/' },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout) as Told;
}

testThatNeeds(whyNoNobody())(
  '[SC-02, CX-08] what cannot be removed is told by its ids, ends nobody, and the next start removes it',
  () => {
    const locked = run('locked');
    const [cell = '', instance = '', ...others] = locked.told;
    expect(others).toEqual([]);
    expect(locked.said).toEqual([
      expect.stringContaining(`cell removal failed {"cell":"${cell}","name":"rootless-removal"`),
      expect.stringContaining(`instance removal failed {"instance":"${instance}"`),
    ]);
    expect(locked.left).toEqual([instance]);

    const exhausted = run('exhausted');
    const [alive = ''] = exhausted.told;
    expect(exhausted.said).toEqual([
      expect.stringContaining(`cell removal failed {"cell":"${alive}","name":"rootless-removal"`),
    ]);
    expect(exhausted.left).toHaveLength(2);

    // What still cannot be removed is in nobody's way.
    const first = run('reclaim');
    expect(first.said).toEqual([
      expect.stringContaining(`instance removal failed {"instance":"${instance}"`),
    ]);
    expect(first.left).toEqual([instance]);

    for (const folder of globSync(`${nobody.state}/${instance}/cells/${cell}`)) chmodSync(folder, 0o700);
    expect(run('reclaim')).toMatchObject({ said: [], left: [] });
    expect(findTraces(nobody.state)).toEqual({ processes: [], cgroups: [], mounts: [], folders: [] });
  },
);
