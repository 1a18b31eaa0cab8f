import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { HELPER_ENV } from '../../src/drivers/process/run-command.ts';

/** Where packages put programs: not what happens to be in the PATH of whoever runs the tests. */
export function findProgram(name: string): string | undefined {
  const folders = HELPER_ENV['PATH']?.split(':') ?? [];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}
