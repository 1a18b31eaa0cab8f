import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import { BASE_ENV } from '../../src/drivers/oci/rootfs.ts';
import { commandFor, fileNameOf, helloIn, requireHello, type LanguageName } from '../support/hello.ts';
import { runCommand } from '../support/run-command.ts';
import type { Way } from './way.ts';

const TOOLS = new Map(bundledTools().map(({ name, path }) => [name, path]));

/** Where a cell finds a program; a shim of a version manager that comes first in our own PATH is something else. */
export function programOf(language: LanguageName): string | undefined {
  const [name] = commandFor(language, '');
  const candidates = [
    TOOLS.get(name),
    ...['/usr/local/bin', '/usr/bin', '/bin'].map((folder) => join(folder, name)),
  ];
  return candidates.find((path) => path !== undefined && existsSync(path));
}

/** The interpreter started by Node on a file on tmpfs, without any walls. */
export function makeBareWay(scratch: string, languages: readonly LanguageName[]): Way {
  const folder = join(scratch, 'bare');
  mkdirSync(folder);
  const commands = new Map<LanguageName, readonly [string, ...string[]]>();
  for (const language of languages) {
    const program = programOf(language);
    if (program === undefined) continue;
    const file = join(folder, fileNameOf(language));
    writeFileSync(file, helloIn(language));
    const [, ...args] = commandFor(language, file);
    commands.set(language, [program, ...args]);
  }
  return {
    name: 'bare',
    languages: new Set(commands.keys()),
    async hello(language) {
      const command = commands.get(language);
      if (command === undefined) throw new RangeError(language);
      const result = await runCommand(command, { cwd: folder, env: BASE_ENV });
      requireHello(`bare ${language}`, result);
      return result.ms;
    },
  };
}
