import { afterAll, describe, expect, test } from 'vitest';
import { bunPrograms } from '../../guest/exactness/corpus/bun.ts';
import { nodePrograms } from '../../guest/exactness/corpus/node.ts';
import { toProgram, type Corpus } from '../../guest/exactness/corpus/program.ts';
import { pythonPrograms } from '../../guest/exactness/corpus/python.ts';
import { rubyPrograms } from '../../guest/exactness/corpus/ruby.ts';
import { finish, NestSite, type Ran } from '../support/nest-site.ts';

const site = new NestSite();
afterAll(() => site[Symbol.asyncDispose]());

const CORPORA: Readonly<Record<string, Corpus>> = {
  python: pythonPrograms,
  ruby: rubyPrograms,
  javascript: nodePrograms,
  typescript: bunPrograms,
};

const fateOf = ({ stdout, stderr, outcome }: Ran) => ({ stdout, stderr, outcome });

for (const [language, corpus] of Object.entries(CORPORA))
  describe(`[CX-02] ${language} in a slot goes on as if started on the file`, async () => {
    const nest = await site.open(language, { slots: 2 });
    test.for(Object.entries(corpus))('%s', async ([, entry]) => {
      const program = toProgram(entry);
      const bare = await finish(await nest.bare(0), program);
      expect(fateOf(await finish(await nest.hot(1), program))).toEqual(fateOf(bare));
    });
  });
