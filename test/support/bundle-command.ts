import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
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
    write: false,
  });
  mkdirSync(COMMAND_FOLDER, { recursive: true });
  for (const made of output) lay(made.fileName, made.type === 'chunk' ? made.code : made.source);
  const made = new Set(output.map(({ fileName }) => fileName));
  for (const name of readdirSync(COMMAND_FOLDER))
    if (name.endsWith('.mjs') && !made.has(name)) rmSync(join(COMMAND_FOLDER, name));
}

/** Another process, such as a soak that a test drives, bundles the same while a command is just being loaded from there. */
function lay(name: string, content: string | Uint8Array): void {
  const path = join(COMMAND_FOLDER, name);
  if (existsSync(path) && readFileSync(path).equals(Buffer.from(content))) return;
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, content);
  renameSync(unfinished, path);
}

/** A module finds the files beside it where they are, and not beside the bundle. */
function keepPlace(code: string, id: string): string | undefined {
  if (!code.includes('import.meta.url')) return undefined;
  return code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href));
}
