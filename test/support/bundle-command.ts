import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

/** A soak or another run in the same checkout may have begun before, and still starts what it has found here. */
const USED_MS = 24 * 60 * 60_000;

export async function bundle(folder = COMMAND_FOLDER): Promise<void> {
  const { output } = await build({
    input: SOURCE,
    platform: 'node',
    // They look for files beside their own modules.
    external: [/^dockerode/, /^oxc-parser/],
    plugins: [{ name: 'places', transform: (code, id) => keepPlace(code, id) }],
    // By these names Node knows what they are, and need not try.
    output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
    logLevel: 'warn',
    write: false,
  });
  mkdirSync(folder, { recursive: true });
  // What others import comes before those who import it.
  const chunks = output.filter((one) => one.type === 'chunk').toSorted((a, b) => +a.isEntry - +b.isEntry);
  for (const { fileName, code } of chunks) put(join(folder, fileName), code);
  const made = new Set(chunks.map(({ fileName }) => fileName));
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const { mtimeMs = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
    if (!made.has(name) && mtimeMs < Date.now() - USED_MS) rmSync(path, { recursive: true, force: true });
  }
}

/** In one step, because somebody may start it at this moment: a file is there as a whole, or as it was. */
function put(path: string, code: string): void {
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, code);
  renameSync(fresh, path);
}

/** A module finds the files beside it where they are, and not beside the bundle. */
function keepPlace(code: string, id: string): string | undefined {
  if (!code.includes('import.meta.url')) return undefined;
  return code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href));
}
