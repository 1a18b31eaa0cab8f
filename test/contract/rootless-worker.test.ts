import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';
import { findProgram } from '../../src/drivers/process/find-program.ts';
import { isRoot, testThatNeeds } from '../support/needs.ts';
import { tmpdirOnTmpfs } from '../support/server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NOBODY = 65534;

/** Why nobody cannot be played here. */
function whyNot(): string | undefined {
  if (!isRoot) return 'only root can become somebody else';
  const missing = ['crun', 'unshare', 'setpriv'].filter((name) => findProgram(name) === undefined);
  return missing.length === 0 ? undefined : `${missing.join(', ')} is not installed`;
}

const folder = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-rootless-worker-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Becomes nobody in a mount namespace of its own, where the checkout can be reached whatever lies above it. */
const BECOME_NOBODY = `
  set -eu
  checkout=$1 seen=$2 home=$3
  mount --bind "$checkout" "$seen"
  cd /
  exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" \\
    "$seen/node_modules/node/bin/node" "$seen/test/contract/rootless-child.ts" "$home"
`;

testThatNeeds(whyNot())('[FL-09, SC-04] without root a worker is the caller, and can be nobody else', () => {
  chmodSync(folder, 0o711);
  const [seen, home] = [join(folder, 'checkout'), join(folder, 'home')];
  for (const path of [seen, home]) mkdirSync(path);
  // Also where only the caller gets through.
  chmodSync(home, 0o700);
  chownSync(home, NOBODY, NOBODY);
  const words = ['-m', 'sh', '-c', BECOME_NOBODY, 'sh', ROOT, seen, home];
  const { stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8', timeout: 60_000 });
  if (!stdout.startsWith('{')) throw new Error(`the child said: ${stderr}`);
  expect(JSON.parse(stdout)).toEqual({
    stdout: 'gitdir: /git\n1000\n',
    uid: NOBODY,
    gid: NOBODY,
    pointer: 'gitdir: /of/the/host\n',
    refused: 'POLICY_UNENFORCEABLE',
  });
});
