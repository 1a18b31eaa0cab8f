import { spawnSync } from 'node:child_process';
import { afterAll, expect } from 'vitest';
import { howOften } from '../support/endurance.ts';
import { testThatNeeds } from '../support/needs.ts';
import { Nobody, whyNoNobody } from '../support/nobody.ts';

const ROUNDS = howOften(6, 60);
const nobody = new Nobody();
afterAll(() => nobody[Symbol.dispose]());

testThatNeeds(whyNoNobody())(
  '[SC-02, SC-03] without root sealed cells end like others, however they end, and the seal holds',
  { timeout: 60_000 + ROUNDS * 5000 },
  () => {
    const [program, ...words] = nobody.command('test/contract/rootless-ends-child.ts');
    const { stdout, stderr } = spawnSync(program, [...words, nobody.state, String(ROUNDS)], {
      encoding: 'utf8',
      env: nobody.env,
      cwd: '/',
    });
    if (!stdout.startsWith('{')) throw new Error(`the child said: ${stderr}`);
    expect(JSON.parse(stdout)).toEqual({
      seals: ['err', 'hold', 'in', 'out', 'status'].map((name) => `${name} ---------`).join(', '),
      adopted: 'CELL_LOST',
      said: [],
      left: [],
    });
  },
);
