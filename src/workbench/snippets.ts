import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HotcellError } from '../core/errors.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { Owner, Snippet, Snippets } from './api.ts';
import type { WorkbenchSettings } from './settings.ts';
import { isSnippetName, readDescription } from './snippet-text.ts';

const ENDING = '.ts';
/** Lower case only: some file systems take `A` and `a` for the same. */
const PLAIN_TENANT = /^[a-z0-9_-]{1,40}$/;

/** Snippets as files, in a folder for each tenant. */
export class FileSnippets implements Snippets {
  readonly #folder: string;
  readonly #settings: WorkbenchSettings['snippets'];
  readonly #changes = new Semaphore(1);

  constructor(folder: string, settings: WorkbenchSettings['snippets']) {
    this.#folder = folder;
    this.#settings = settings;
  }

  async save(
    owner: Owner,
    { name, code }: { readonly name: string; readonly code: string },
  ): Promise<Snippet> {
    if (!isSnippetName(name)) throw refused('a name has 1 to 64 letters, digits, - and _', 'name');
    const { bytes, max } = this.#settings;
    if (Buffer.byteLength(code) > bytes) throw refused(`a snippet has at most ${bytes} bytes`, 'code');
    const description = readDescription(code);
    if (description === undefined) {
      throw refused('the code has no comment with @description and a few words after it', 'code');
    }
    return this.#changes.run(async () => {
      const names = await this.#names(owner);
      if (!names.includes(name) && names.length >= max) {
        throw refused(`there are ${max} snippets already`, 'name');
      }
      await this.#write(owner, name, code);
      return { name, description };
    });
  }

  /** A reader sees the old one or the new one, also after a crash. */
  async #write(owner: Owner, name: string, code: string): Promise<void> {
    const folder = this.#folderOf(owner);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const unfinished = join(folder, `.${name}-${randomBytes(4).toString('hex')}`);
    try {
      await writeFile(unfinished, code, { mode: 0o600, flag: 'wx' });
      await rename(unfinished, join(folder, name + ENDING));
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    }
  }

  async list(owner: Owner): Promise<readonly Snippet[]> {
    const names = await this.#names(owner);
    const snippets: Snippet[] = [];
    for (const name of names) {
      const code = await this.#read(owner, name);
      if (code !== undefined) snippets.push({ name, description: readDescription(code) ?? '' });
    }
    return snippets;
  }

  async get(owner: Owner, name: string): Promise<Snippet & { readonly code: string }> {
    const code = await this.#read(owner, name);
    if (code === undefined) throw unknown(name);
    return { name, description: readDescription(code) ?? '', code };
  }

  remove(owner: Owner, name: string): Promise<void> {
    return this.#changes.run(async () => {
      if ((await this.#read(owner, name)) === undefined) throw unknown(name);
      await rm(join(this.#folderOf(owner), name + ENDING), { force: true });
    });
  }

  async #names(owner: Owner): Promise<string[]> {
    const files = await orNothing(readdir(this.#folderOf(owner)));
    return (files ?? [])
      .filter((file) => file.endsWith(ENDING))
      .map((file) => file.slice(0, -ENDING.length))
      .filter(isSnippetName)
      .toSorted();
  }

  async #read(owner: Owner, name: string): Promise<string | undefined> {
    if (!isSnippetName(name)) return undefined;
    return orNothing(readFile(join(this.#folderOf(owner), name + ENDING), 'utf8'));
  }

  /** SECURITY: a tenant's name is no path, whatever is in it. */
  #folderOf({ tenant }: Owner): string {
    const hashed = `.${createHash('sha256').update(tenant).digest('hex').slice(0, 32)}`;
    return join(this.#folder, PLAIN_TENANT.test(tenant) ? tenant : hashed);
  }
}

/** Undefined when there is no such file or folder. */
async function orNothing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function refused(message: string, field: string): HotcellError {
  return new HotcellError('SNIPPET_REFUSED', message, { field });
}

function unknown(name: string): HotcellError {
  return new HotcellError('SNIPPET_UNKNOWN', `there is no snippet ${JSON.stringify(name.slice(0, 64))}`);
}
