import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { HELPER_ENV } from './run-command.ts';

/** Where helper programs are looked for. */
export function findProgram(name: string): string | undefined {
  const folders = HELPER_ENV['PATH']?.split(':') ?? [];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}
