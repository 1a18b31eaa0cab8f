import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import type { ExecRequest } from '../../src/core/exec.ts';
import { bash } from '../contract/cells.ts';
import { isRoot, testThatNeeds } from '../support/needs.ts';
import type { PreloadChildTask } from '../support/preload-child.ts';
import { tmpdirOnTmpfs } from '../support/server.ts';

const NO_PROGRAMS = { read: [], write: [], port: undefined, programs: false } as const;
const NOBODY = 65534;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Becomes nobody in a mount namespace of its own, where the checkout can be reached whatever lies above it. */
const BECOME_NOBODY = `
  set -eu
  checkout=$1 seen=$2 task=$3
  mount --bind "$checkout" "$seen"
  cd /
  exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i HOME=/nonexistent \\
    "$seen/node_modules/node/bin/node" "$seen/test/support/preload-child.ts" "$task"
`;

describe('without root', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-nobody-'));
    chmodSync(folder, 0o711);
    for (const name of ['state', 'home', 'checkout']) {
      mkdirSync(join(folder, name), { mode: 0o755 });
      chmodSync(join(folder, name), 0o755);
      if (name !== 'checkout') chownSync(join(folder, name), NOBODY, NOBODY);
    }
    const file = join(folder, 'home/file');
    writeFileSync(file, 'content of the user', { mode: 0o644 });
    chownSync(file, NOBODY, NOBODY);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const asNobody = (requests: ExecRequest[]): Record<string, unknown>[] => {
    const task: PreloadChildTask = { stateDirectory: join(folder, 'state/s'), requests };
    const words = [
      '-m',
      'sh',
      '-c',
      BECOME_NOBODY,
      'sh',
      ROOT,
      join(folder, 'checkout'),
      JSON.stringify(task),
    ];
    const { stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8', timeout: 60_000 });
    if (stdout === '') throw new Error(stderr);
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };

  const rootTest = testThatNeeds(isRoot ? undefined : 'only root can become somebody else');
  rootTest('[MC-02, SC-04] the files of the user cannot be read, changed, or given other modes', () => {
    const file = join(folder, 'home/file');
    const before = statSync(file);
    const [result] = asNobody([
      bash(`cat ${file}; chmod 777 ${file}; chmod 777 ${folder}/home; touch -d 2001-01-01 ${file}; truncate -s 0 ${file}; \
        : > ${file}; mv ${file} ${file}2; rm ${file}; ln ${file} mine; setfattr -n user.x -v y ${file}; true`),
    ]);
    expect(result).toMatchObject({
      isolation: { enforcement: { identity: 'nobody', filesystem: 'kernel' } },
    });
    expect(JSON.stringify(result)).not.toContain('content of the user');
    const after = statSync(file);
    expect([after.mode, after.mtimeMs, after.size]).toEqual([before.mode, before.mtimeMs, before.size]);
    expect(readFileSync(file, 'utf8')).toBe('content of the user');
  });

  rootTest('[MC-02] other processes of the user cannot be signalled, and Bun runs', () => {
    const [one, two] = asNobody([
      bash('kill -0 $PPID && echo signalled; kill -9 -1; true'),
      { argv: ['bun', '-e', 'console.log("works", process.getuid())'], env: {}, reach: NO_PROGRAMS },
    ]);
    expect(JSON.stringify(one)).not.toContain('signalled\\n');
    expect(two).toMatchObject({ output: `works ${NOBODY}\n`, outcome: { kind: 'exited', code: 0 } });
  });

  rootTest('[MC-04] a path that was granted can be used, and its folder cannot', () => {
    const file = join(folder, 'home/file');
    writeFileSync(join(folder, 'home/other'), 'not granted');
    const [result] = asNobody([
      {
        ...bash(`cat ${file} ${folder}/home/other; echo more >> ${file}; ls ${folder}/home; true`),
        reach: { read: [], write: [file], port: undefined, programs: true },
      },
    ]);
    expect(JSON.stringify(result)).toContain('content of the user');
    expect(JSON.stringify(result)).not.toContain('not granted');
    expect(readFileSync(file, 'utf8')).toBe('content of the usermore\n');
  });
});
