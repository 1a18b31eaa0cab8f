import { chmodSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toHotcellError } from '../../src/core/errors.ts';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { bash, finish } from './cells.ts';
import { makeOciDriver } from './rootless-driver.ts';

/** Somebody who is not root has a worker in a folder of theirs. What came of it goes to stdout. */
const home = process.argv[2] ?? '';
const base = mkdtempSync(join(home, 'worker-'));
const stateDirectory = mkdtempSync(join(home, 'state-'));
chmodSync(stateDirectory, 0o711);
const tree = join(base, 'tree');
mkdirSync(tree);
writeFileSync(join(tree, '.git'), 'gitdir: /of/the/host\n');
writeFileSync(join(base, 'pointer'), 'gitdir: /git\n');

const driver = makeOciDriver(stateDirectory, SILENT_LOG);
const owner = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
const spec = {
  name: 'rootless-worker-0',
  kind: 'worker',
  limits: DEFAULT_LIMITS,
  owner,
  folders: [
    { name: 'work', folder: tree, at: '/workspace', writable: true },
    { name: 'pointer', folder: join(base, 'pointer'), at: '/workspace/.git' },
  ],
} as const;

const cell = await driver.create(spec);
const exec = await cell.exec({
  ...bash('cat .git; id -u; echo new >new; echo x >.git; rm -f .git; true'),
  folder: 'work',
});
exec.closeStdin();
const { stdout } = await finish(exec);
await cell.dispose();
const refused = await driver.create({ ...spec, owner: { ...owner, gid: owner.gid - 1 } }).then(
  () => 'nothing',
  (error: unknown) => toHotcellError(error).code,
);
await driver.close();
const { uid, gid } = statSync(join(tree, 'new'));
const pointer = readFileSync(join(tree, '.git'), 'utf8');
process.stdout.write(JSON.stringify({ stdout, uid, gid, pointer, refused }));
