import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Probe } from '../core/driver.ts';
import { SILENT_LOG } from '../core/log.ts';
import type { Config } from './config.ts';
import { toLanguageTable } from './language-table.ts';
import { DRIVER_NAMES, bundledTools, chooseDriver, makeDriver } from './make-drivers.ts';

export interface HostReport {
  readonly node: string;
  readonly drivers: readonly { readonly name: string; readonly chosen: boolean; readonly probe: Probe }[];
  readonly languages: readonly {
    readonly name: string;
    readonly available: boolean;
    readonly problem?: string;
  }[];
}

/** What works on this machine, without changing anything on it. */
export async function inspectHost(config: Config): Promise<HostReport> {
  const chosen = chooseDriver(config);
  const drivers = await Promise.all(
    DRIVER_NAMES.map(async (name) => ({
      name,
      chosen: name === chosen,
      probe: await makeDriver(name, config, SILENT_LOG).probe(),
    })),
  );
  const languages = Object.entries(toLanguageTable(config.languages)).map(([name, language]) => {
    const program = language.command[0] ?? '';
    if (isThere(program, config.rootfs ?? '/')) return { name, available: true };
    const remedy = language.package === undefined ? '' : `; apt-get install -y ${language.package}`;
    return { name, available: false, problem: `${program} is not installed${remedy}` };
  });
  return { node: process.version, drivers, languages };
}

/** Cells see the folders below /usr and the bundled tools; a program elsewhere on the host is not there for them. */
function isThere(program: string, root: string): boolean {
  if (program.includes('/')) return existsSync(join(root, program));
  if (bundledTools().some((tool) => tool.name === program)) return true;
  return ['usr/local/bin', 'usr/bin', 'bin'].some((folder) => existsSync(join(root, folder, program)));
}
