import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RunInCell } from './cell-git.ts';
import {
  ScratchRepository,
  sealedWorker,
  writeFiles,
  type ScratchSealed,
} from './scratch-repository.double.ts';

let repository: ScratchRepository;
let worker: ScratchSealed;
let before: Record<string, string>;

describe('[FL-09] a cell that lies about its commits is refused:', () => {
  let known: string;
  let objects: string;
  beforeEach(async () => {
    repository = await ScratchRepository.make();
    worker = await sealedWorker(repository);
    await worker.place.prepare();
    before = await repository.untouchables();
    await worker.place.settle(worker.run);
    known = await worker.place.head();
    objects = await worker.git.run(['count-objects', '-v']);
  });
  afterEach(async () => {
    try {
      expect(await worker.place.head()).toBe(known);
      expect(await worker.git.run(['count-objects', '-v'])).toBe(objects);
      expect(await repository.untouchables()).toEqual(before);
      await repository.user(['fsck', '--strict', '--no-dangling']);
      // Whatever it was, the worker goes on.
      await worker.place.settle(worker.run);
      expect(await worker.agent(['rev-parse', 'HEAD'])).toBe(known);
    } finally {
      await repository[Symbol.asyncDispose]();
    }
  });

  const mktree = async (lines: string): Promise<string> => {
    const { stdout } = await worker.run(['git', 'mktree', '--missing'], {
      env: { GIT_DIR: worker.inner },
      input: Buffer.from(lines),
    });
    return Buffer.from(stdout).toString().trim();
  };
  const blob = async (content: string): Promise<string> => {
    const { stdout } = await worker.run(['git', 'hash-object', '-w', '--stdin'], {
      env: { GIT_DIR: worker.inner },
      input: Buffer.from(content),
    });
    return Buffer.from(stdout).toString().trim();
  };
  const commitTree = async (tree: string, parents: readonly string[] = ['HEAD']): Promise<string> => {
    const commit = await worker.agent([
      'commit-tree',
      ...parents.flatMap((id) => ['-p', id]),
      '-m',
      'x',
      tree,
    ]);
    await worker.agent(['update-ref', 'HEAD', commit]);
    return commit;
  };

  test('rewritten history', async () => {
    await worker.agent(['commit', '--quiet', '--amend', '-m', 'rewritten']);
    await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/does not continue/);
  });

  test('history that has nothing to do with ours', async () => {
    await commitTree(await mktree(''), []);
    await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/does not continue/);
  });

  test.each([
    ['a .git folder', '.git/config'],
    ['a .git folder in other letters', '.GIT/config'],
    ['a .git folder for Windows', 'git~1/config'],
    ['a .git folder for macOS', '.g\u200cit/config'],
    ['a parent', '../config'],
    ['a dot', './config'],
  ])('%s in a tree', async (_what, path) => {
    const [folder = '', file = ''] = path.split('/');
    const inner = await mktree(`100644 blob ${await blob('[core]\nfsmonitor=x')}\t${file}\n`);
    await commitTree(await rawTree([['40000', folder, inner]]));
    await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/refused/);
  });

  test('a link for .gitmodules', async () => {
    await commitTree(await mktree(`120000 blob ${await blob('/etc/passwd')}\t.gitmodules\n`));
    await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/refused.*gitmodulesSymlink/s);
  });

  test.each([
    ['a path that leaves', '[submodule "x"]\n\tpath = ../../x\n\turl = -u./payload\n'],
    ['a name that leaves', '[submodule "../../x"]\n\tpath = x\n\turl = https://example.org\n'],
    [
      'a command to update',
      '[submodule "x"]\n\tpath = x\n\turl = https://example.org\n\tupdate = !touch canary\n',
    ],
  ])('.gitmodules with %s', async (_what, content) => {
    await commitTree(await mktree(`100644 blob ${await blob(content)}\t.gitmodules\n`));
    await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/refused.*gitmodules/s);
  });

  test('a few small trees that stand for very many files', async () => {
    let tree = await mktree(`100644 blob ${await blob('x')}\tf\n`);
    for (let depth = 0; depth < 8; depth++)
      tree = await mktree(Array.from({ length: 10 }, (_, name) => `040000 tree ${tree}\t${name}\n`).join(''));
    await commitTree(tree);
    await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/too many files/);
    await worker.agent(['update-ref', 'HEAD', known]);
  });

  test('one blob that stands for more bytes than anybody has', async () => {
    const large = await blob('x'.repeat(8 * 1024 ** 2));
    await commitTree(
      await mktree(Array.from({ length: 600 }, (_, name) => `100644 blob ${large}\t${name}\n`).join('')),
    );
    await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/too much/);
  });

  test('missing objects', async () => {
    await commitTree(await mktree(`100644 blob ${'1'.repeat(40)}\tf\n`));
    await expect(worker.place.takeCommits(worker.run)).rejects.toThrow(/failed in the cell/);
  });

  test.each([
    ['garbage', /signature/, () => Buffer.from('LIES of packs')],
    ['nothing', /early EOF/, () => Buffer.alloc(0)],
    ['a header with no end', /refused/, () => Buffer.from('5041434b00000002ffffffff', 'hex')],
    ['a blob that claims to be gigabytes', /over limit/, () => toPack(bomb())],
  ])('%s for a pack', async (_what, words, make) => {
    const bytes = make();
    const lie: RunInCell = async (argv, options) => {
      if (argv.includes('rev-parse')) return { code: 0, stdout: Buffer.from('2'.repeat(40)), stderr: '' };
      if (!argv.includes('pack-objects')) return worker.run(argv, options);
      options?.onStdout?.(bytes);
      return { code: 0, stdout: Buffer.alloc(0), stderr: '' };
    };
    await expect(worker.place.takeCommits(lie)).rejects.toThrow(words);
  });

  test('output without end', async () => {
    const endless: RunInCell = (argv, options) =>
      argv.includes('pack-objects')
        ? worker.run(['cat', '/dev/zero'], {
            ...options,
            limitBytes: Math.min(options?.limitBytes ?? 0, 50 * 1024 ** 2),
          })
        : worker.run(argv, options);
    await writeFiles(worker.worktree, { made: 'x' });
    await worker.place.commit(worker.run, 'work', { allowEmpty: false });
    await expect(worker.place.takeCommits(endless)).rejects.toThrow(/more than/);
  });

  test('names of commits that are arguments', async () => {
    for (const name of ['--upload-pack=touch', 'HEAD', '../../x', '']) {
      const lie: RunInCell = (argv, options) =>
        argv.includes('rev-parse')
          ? Promise.resolve({ code: 0, stdout: Buffer.from(`${name}\n`), stderr: '' })
          : worker.run(argv, options);
      await expect(worker.place.takeCommits(lie)).rejects.toThrow(/not the name of a commit/);
    }
  });

  /** Git's own commands refuse to make such trees. */
  async function rawTree(entries: readonly (readonly [string, string, string])[]): Promise<string> {
    const body = Buffer.concat(
      entries.flatMap(([mode, name, id]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]),
    );
    const { stdout, stderr } = await worker.run(
      ['git', 'hash-object', '-w', '-t', 'tree', '--literally', '--stdin'],
      {
        env: { GIT_DIR: worker.inner },
        input: body,
      },
    );
    const id = Buffer.from(stdout).toString().trim();
    if (!/^[0-9a-f]{40}$/.test(id)) throw new Error(stderr);
    return id;
  }

  /** A small base and a delta that says its result has 64 GiB. */
  function bomb(): Buffer[] {
    const base = Buffer.alloc(1024);
    const varint = (size: number): Buffer => {
      const bytes: number[] = [];
      let rest = size;
      do {
        bytes.push((rest % 128) | (rest >= 128 ? 128 : 0));
        rest = Math.floor(rest / 128);
      } while (rest > 0);
      return Buffer.from(bytes);
    };
    const delta = Buffer.concat([varint(1024), varint(64 * 1024 ** 3), Buffer.from([0x90, 0x01])]);
    const id = createHash('sha1').update(`blob 1024\0`).update(base).digest();
    return [
      Buffer.concat([toEntryHead(3, base.length), deflateSync(base)]),
      Buffer.concat([toEntryHead(7, delta.length), id, deflateSync(delta)]),
    ];
  }

  function toEntryHead(kind: number, size: number): Buffer {
    const bytes = [(kind << 4) | (size & 15)];
    for (let rest = size >> 4; rest > 0; rest >>= 7) {
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 128;
      bytes.push(rest & 127);
    }
    return Buffer.from(bytes);
  }

  function toPack(entries: readonly Buffer[]): Buffer {
    const head = Buffer.from('5041434b0000000200000000', 'hex');
    head.writeUInt32BE(entries.length, 8);
    const body = Buffer.concat([head, ...entries]);
    return Buffer.concat([body, createHash('sha1').update(body).digest()]);
  }
});
