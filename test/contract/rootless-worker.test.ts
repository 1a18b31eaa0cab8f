import { spawnSync } from 'node:child_process';
import { afterAll, expect } from 'vitest';
import { testThatNeeds } from '../support/needs.ts';
import { NOBODY, Nobody, whyNoNobody } from '../support/nobody.ts';

const nobody = new Nobody();
afterAll(() => nobody[Symbol.dispose]());

testThatNeeds(whyNoNobody())(
  '[FL-09, SC-04] without root a worker is the caller, and can be nobody else',
  () => {
    const [program, ...words] = nobody.command('test/contract/rootless-child.ts');
    const options = { encoding: 'utf8', timeout: 60_000, env: nobody.env, cwd: '/' } as const;
    // Also where only the caller gets through.
    const { stdout, stderr } = spawnSync(program, [...words, nobody.home], options);
    if (!stdout.startsWith('{')) throw new Error(`the child said: ${stderr}`);
    expect(JSON.parse(stdout)).toEqual({
      stdout: 'gitdir: /git\n1000\n',
      uid: NOBODY,
      gid: NOBODY,
      pointer: 'gitdir: /of/the/host\n',
      refused: 'POLICY_UNENFORCEABLE',
    });
  },
);
