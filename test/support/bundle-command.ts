import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'rolldown';
import { COMMAND_FOLDER, SOURCE } from './command.ts';

/** Each project and each caller has a copy of this module, and all of them one process. */
const home = globalThis as typeof globalThis & { hotcellTestCommand?: Promise<void> };

/** Makes `MAIN` of the sources as they are now, once a process. */
export default function bundleCommand(): Promise<void> {
  return (home.hotcellTestCommand ??= bundle());
}

async function bundle(): Promise<void> {
  const { output } = await build({
    input: SOURCE,
    platform: 'node',
    // They look for files beside their own modules.
    external: [/^dockerode/, /^oxc-parser/],
    plugins: [{ name: 'places', transform: (code, id) => keepPlace(code, id) }],
    // By these names Node knows what they are, and need not try.
    output: { dir: COMMAND_FOLDER, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
    logLevel: 'warn',
  });
  const made = new Set(output.map(({ fileName }) => fileName));
  for (const name of readdirSync(COMMAND_FOLDER))
    if (!made.has(name)) rmSync(join(COMMAND_FOLDER, name), { recursive: true });
}

/** A module finds the files beside it where they are, and not beside the bundle. */
function keepPlace(code: string, id: string): string | undefined {
  if (!code.includes('import.meta.url')) return undefined;
  return code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href));
}
