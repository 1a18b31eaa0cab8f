import { describe, expect, test } from 'vitest';
import type { CellFolder, CellSpec } from '../../core/cell.ts';
import { DEFAULT_LIMITS, type Limits } from '../../core/limits.ts';
import { toBuild, toDelete, toRunWords, type Words } from './argv.ts';

const MiB = 1024 * 1024;

function wordsOf(limits: Partial<Limits> = {}, folders: readonly CellFolder[] = []): Words {
  const spec: CellSpec = { name: 'cell', kind: 'run', limits: { ...DEFAULT_LIMITS, ...limits }, folders };
  return toRunWords({ id: 'cell-1', spec, image: 'img', labels: { a: 'b' }, guest: '/srv/guest' });
}

/** All values of an option. */
function valuesOf(words: Words, option: string): string[] {
  return words.flatMap((word, index) => (word === option ? [words[index + 1] ?? ''] : []));
}

describe('a cell', () => {
  test('[MC-13] is one call, word by word', () => {
    expect(wordsOf({ cpus: 2, memoryBytes: 512 * MiB }).join(' ')).toMatchInlineSnapshot(
      `"run --interactive --rm --progress none --name cell-1 --label a=b --cpus 2 --memory 512m --network none --no-dns --read-only --cap-drop ALL --user 1000:1000 --ulimit nproc=64:64 --ulimit nofile=1024:1024 --ulimit core=0:0 --shm-size 16m --mount type=tmpfs,target=/tmp,size=64m,mode=1777 --volume /srv/guest:/opt/hotcell/guest:ro --env HOME=/tmp --env LANG=C.UTF-8 --workdir /tmp --entrypoint perl img /opt/hotcell/guest/agent.pl"`,
    );
  });

  test.each([
    [0.5, '1'],
    [1, '1'],
    [1.1, '2'],
    [2, '2'],
  ])('[MC-06] %d CPUs are granted as %s, since there are no fractions', (cpus, granted) => {
    expect(valuesOf(wordsOf({ cpus }), '--cpus')).toEqual([granted]);
  });

  test.each([
    [8 * MiB, '200m'],
    [200 * MiB, '200m'],
    [512 * MiB, '512m'],
    [512 * MiB + 1, '512m'],
  ])(
    '[MC-06] %d bytes of memory are granted as %s, never more than asked for but for the least',
    (memoryBytes, granted) => {
      expect(valuesOf(wordsOf({ memoryBytes }), '--memory')).toEqual([granted]);
    },
  );

  test('[MC-13] options come before the image, and nothing after it but the agent', () => {
    const words = wordsOf();
    expect(words.slice(words.indexOf('img'))).toEqual(['img', '/opt/hotcell/guest/agent.pl']);
  });

  test('[MC-07] folders of the host are seen and not written', () => {
    const folders = [{ name: 'code', folder: '/srv/a b', at: '/code' }];
    expect(valuesOf(wordsOf({}, folders), '--volume')).toEqual([
      '/srv/guest:/opt/hotcell/guest:ro',
      '/srv/a b:/code:ro',
    ]);
  });

  test('a colon in a path takes the other form; what neither can say is refused', () => {
    const at = (folder: string) => wordsOf({}, [{ name: 'x', folder, at: '/x' }]);
    expect(valuesOf(at('/a:b'), '--mount')).toContain('type=virtiofs,source=/a:b,target=/x,readonly');
    for (const folder of ['/a:b,c', '/a:b=c'])
      expect(() => at(folder)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
  });
});

test('[SC-02] a container is removed by its name, never all of them', () => {
  expect(toDelete('x')).toEqual(['delete', '--force', 'x']);
});

test('[MC-05] an image is built from a recipe and a base', () => {
  expect(
    toBuild({
      tag: 'bun-runner-base:latest',
      context: '/srv/images',
      file: '/srv/images/bun-runner-base/Dockerfile',
      base: 'oven/bun:1-slim',
      labels: { 'hotcell.recipe': 'sha256:1' },
      platform: undefined,
    }).join(' '),
  ).toBe(
    'build --progress plain --file /srv/images/bun-runner-base/Dockerfile --build-arg BASE=oven/bun:1-slim ' +
      '--label hotcell.recipe=sha256:1 --tag bun-runner-base:latest /srv/images',
  );
});
