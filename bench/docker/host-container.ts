import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundledTools } from '../../src/app/make-drivers.ts';
import { BASE_ENV } from '../../src/drivers/oci/rootfs.ts';
import type { EngineApi } from './engine-api.ts';

const TOOLS_IN_CONTAINER = BASE_ENV['PATH']?.split(':')[0] ?? '/usr/local/bin';
const HOST_FOLDERS = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];
const HOST_FILES = ['/etc/alternatives', '/etc/ld.so.cache'];

/**
 * A container that sees the same programs as a cell: an image of nothing but mount points, and the host's /usr in it.
 * So nothing has to be pulled, and docker exec starts the very files that all the other ways start.
 */
export async function startHostContainer(
  stack: AsyncDisposableStack,
  engine: EngineApi,
  scratch: string,
): Promise<string> {
  const name = `hotcell-bench-${randomBytes(3).toString('hex')}`;
  const root = join(scratch, 'image');
  const binds = makeImageRoot(root);
  const archive = execFileSync('tar', ['-c', '-C', root, '--owner=0', '--group=0', '.']);
  stack.defer(() => engine.call('DELETE', `/images/${name}?force=1`));
  await engine.importImage(name, archive);
  stack.defer(() => engine.call('DELETE', `/containers/${name}?force=1&v=1`));
  await engine.call('POST', `/containers/create?name=${name}`, {
    Image: name,
    Cmd: ['sleep', 'infinity'],
    Env: Object.entries(BASE_ENV).map(([key, value]) => `${key}=${value}`),
    HostConfig: {
      Binds: binds.map(({ source, target }) => `${source}:${target}:ro`),
      NetworkMode: 'none',
      Tmpfs: { '/tmp': 'exec' },
    },
  });
  await engine.call('POST', `/containers/${name}/start`);
  return name;
}

function makeImageRoot(root: string): { source: string; target: string }[] {
  const binds: { source: string; target: string }[] = [];
  for (const folder of ['dev', 'etc', 'proc', 'sys', 'tmp', TOOLS_IN_CONTAINER.slice(1)]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  for (const folder of HOST_FOLDERS.filter((candidate) => existsSync(`/${candidate}`))) {
    const link = linkTarget(`/${folder}`);
    if (link !== undefined) symlinkSync(link, join(root, folder));
    else {
      mkdirSync(join(root, folder));
      binds.push({ source: `/${folder}`, target: `/${folder}` });
    }
  }
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\n');
  for (const path of HOST_FILES.filter(existsSync)) binds.push({ source: path, target: path });
  for (const { name, path } of bundledTools()) {
    binds.push({ source: path, target: `${TOOLS_IN_CONTAINER}/${name}` });
  }
  return binds;
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
