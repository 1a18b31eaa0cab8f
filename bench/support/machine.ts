import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { readCgroupLayout } from '../../src/drivers/oci/cgroup-layout.ts';
import { runCommand } from './run-command.ts';

export interface Machine {
  readonly system: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly cgroups: string;
}

export async function describeMachine(): Promise<Machine> {
  const { version } = await readCgroupLayout();
  return {
    system: `${type()} ${release().split('-')[0] ?? ''}`,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    cgroups: version === 'none' ? 'none' : `v${version}`,
  };
}

export type Versions = Readonly<Record<string, string>>;

/** The first line that each program says about itself; programs that are not there are left out. */
export async function describeVersions(commands: ReadonlyMap<string, readonly string[]>): Promise<Versions> {
  const found: Record<string, string> = {};
  for (const [name, [program = '', ...args]] of commands) {
    const { code, stdout } = await runCommand([program, ...args]).catch(() => ({ code: 1, stdout: '' }));
    if (code === 0) found[name] = (stdout.split('\n')[0] ?? '').replace(/ \(.*$/, '').trim();
  }
  return found;
}
