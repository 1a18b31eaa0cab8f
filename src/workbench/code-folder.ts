import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SNIPPETS } from './snippet-text.ts';

/** What a cell says to show that it really sees this folder. */
const TOKEN_FILE = '.token';
const MODULES = 'node_modules';
/** Makes Bun find what snippets are imported by. */
const TSCONFIG = JSON.stringify({ compilerOptions: { paths: { [`${SNIPPETS}/*`]: [`./${SNIPPETS}/*`] } } });

/** The code of one run, as its cell is to see it. */
export interface CodeFiles {
  /** Such as `main.ts`. */
  readonly main: { readonly name: string; readonly code: string };
  readonly snippets: ReadonlyMap<string, string>;
  /** Where the cell sees the packages; undefined for none. */
  readonly modules: string | undefined;
}

/**
 * The folder of the host that the cells of a workbench see as /code. SECURITY: we alone write to it; cells read it, also
 * those whose user is nobody on this host.
 */
export class CodeFolder {
  readonly path: string;
  readonly token = randomBytes(16).toString('hex');
  /** What lies there, by path; a link by its target. */
  readonly #present = new Map<string, string>();

  private constructor(path: string) {
    this.path = path;
  }

  static async make(path: string): Promise<CodeFolder> {
    const folder = new CodeFolder(path);
    await mkdir(join(path, SNIPPETS), { recursive: true });
    // Whatever our umask is.
    for (const each of [path, join(path, SNIPPETS)]) await chmod(each, 0o755);
    folder.#write('tsconfig.json', TSCONFIG);
    folder.#write(TOKEN_FILE, folder.token);
    return folder;
  }

  /** Where a cell finds the token, below the folder. */
  get tokenFile(): string {
    return TOKEN_FILE;
  }

  /**
   * Makes the folder like this, and nothing else stays of runs before. Without waiting: as a rule it is one small file in
   * memory, and a busy machine takes longer to come back to us than to write it.
   */
  lay({ main, snippets, modules }: CodeFiles): void {
    const wanted = new Map([[main.name, main.code]]);
    for (const [name, code] of snippets) wanted.set(`${SNIPPETS}/${name}.ts`, code);
    const kept = new Set(['tsconfig.json', TOKEN_FILE, MODULES]);
    for (const name of this.#present.keys()) if (!wanted.has(name) && !kept.has(name)) this.#remove(name);
    for (const [name, code] of wanted) if (this.#present.get(name) !== code) this.#write(name, code);
    this.#link(modules);
  }

  /** Whole or not at all, for whoever reads it meanwhile. */
  #write(name: string, text: string): void {
    const unfinished = join(this.path, '.unfinished');
    writeFileSync(unfinished, text, { mode: 0o644 });
    renameSync(unfinished, join(this.path, name));
    this.#present.set(name, text);
  }

  #link(target: string | undefined): void {
    if (this.#present.get(MODULES) === target) return;
    if (target === undefined) return this.#remove(MODULES);
    const unfinished = join(this.path, '.unfinished-link');
    rmSync(unfinished, { force: true });
    symlinkSync(target, unfinished);
    renameSync(unfinished, join(this.path, MODULES));
    this.#present.set(MODULES, target);
  }

  #remove(name: string): void {
    rmSync(join(this.path, name), { force: true });
    this.#present.delete(name);
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}
