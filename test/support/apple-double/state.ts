import { createHash, randomBytes } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ContainerRecord, ContainerState, Image } from './configuration.ts';

export interface Control {
  readonly version: string;
  readonly services: 'running' | 'unregistered' | 'not running';
  /** What can be pulled. */
  readonly registry: readonly string[];
  /** Programs of the host that every image has. */
  readonly tools: readonly { readonly name: string; readonly path: string }[];
}

export interface Fault {
  /** The words of the command, such as `image inspect`. */
  readonly command: string;
  /** Never answers. */
  readonly hang?: boolean;
  readonly delayMs?: number;
  readonly stderr?: string;
  readonly exitCode?: number;
  /** Carries out the command and answers nothing afterwards. */
  readonly hangAfter?: boolean;
  /** As often as it is asked for; otherwise once. */
  readonly always?: boolean;
}

/** All that the double knows, in one folder. Folders are made and moved in one step, so no lock is needed. */
export class DoubleState {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    for (const name of ['containers', 'images', 'faults', 'runtime', 'removed', 'sockets'])
      mkdirSync(join(folder, name), { recursive: true, mode: 0o711 });
  }

  get runtime(): string {
    return join(this.folder, 'runtime');
  }

  get control(): Control {
    return readJson(join(this.folder, 'control.json')) as Control;
  }

  set control(control: Control) {
    writeJson(join(this.folder, 'control.json'), control);
  }

  noteCall(argv: readonly string[]): void {
    appendFileSync(join(this.folder, 'calls.jsonl'), `${JSON.stringify(argv)}\n`);
  }

  addFault(fault: Fault): void {
    writeJson(join(this.folder, 'faults', `${randomBytes(6).toString('hex')}.json`), fault);
  }

  clearFaults(): void {
    for (const name of readdirSync(join(this.folder, 'faults')))
      rmSync(join(this.folder, 'faults', name), { force: true });
  }

  /** A fault that is prepared for this command; whoever gets it is the only one. */
  takeFault(command: string): Fault | undefined {
    for (const name of readdirSync(join(this.folder, 'faults')).filter((entry) => entry.endsWith('.json'))) {
      const file = join(this.folder, 'faults', name);
      const fault = readJsonIfThere(file) as Fault | undefined;
      if (fault?.command !== command) continue;
      if (fault.always === true) return fault;
      try {
        renameSync(file, join(this.folder, 'removed', name));
        return fault;
      } catch {
        // Another call has it.
      }
    }
    return undefined;
  }

  /** Not in the folder of the container: the path of a socket is short. */
  socketOf(id: string): string {
    return join(this.folder, 'sockets', createHash('sha256').update(id).digest('hex').slice(0, 16));
  }

  folderOf(id: string): string {
    return join(this.folder, 'containers', id);
  }

  /** False when there is one of that name. */
  addContainer(record: ContainerRecord): boolean {
    const { id } = record.configuration;
    const unfinished = join(this.folder, 'removed', `new-${randomBytes(6).toString('hex')}`);
    mkdirSync(unfinished, { mode: 0o711 });
    writeJson(join(unfinished, 'record.json'), record);
    writeJson(join(unfinished, 'state.json'), { state: 'stopped' });
    try {
      if (existsSync(this.folderOf(id))) throw new Error('taken');
      renameSync(unfinished, this.folderOf(id));
      return true;
    } catch {
      rmSync(unfinished, { recursive: true });
      return false;
    }
  }

  /** False when there is none. */
  removeContainer(id: string): boolean {
    const aside = join(this.folder, 'removed', randomBytes(6).toString('hex'));
    try {
      renameSync(this.folderOf(id), aside);
    } catch {
      return false;
    }
    rmSync(aside, { recursive: true, force: true });
    return true;
  }

  findContainer(id: string): ContainerRecord | undefined {
    return readJsonIfThere(join(this.folderOf(id), 'record.json')) as ContainerRecord | undefined;
  }

  /** In an order that nobody can rely on. */
  listContainers(): ContainerRecord[] {
    const found = readdirSync(join(this.folder, 'containers')).flatMap((id) => this.findContainer(id) ?? []);
    return found
      .map((record) => ({ record, place: Math.random() }))
      .toSorted((one, other) => one.place - other.place)
      .map(({ record }) => record);
  }

  stateOf(id: string): { readonly state: ContainerState; readonly startedDate?: string } {
    const found = readJsonIfThere(join(this.folderOf(id), 'state.json'));
    return (found as { state: ContainerState } | undefined) ?? { state: 'stopped' };
  }

  setState(id: string, state: ContainerState, startedDate?: string): void {
    if (existsSync(this.folderOf(id)))
      writeJson(join(this.folderOf(id), 'state.json'), { state, startedDate });
  }

  addImage(image: Image): void {
    writeJson(this.#imageFile(image.reference), image);
  }

  removeImage(reference: string): boolean {
    const file = this.#imageFile(toFullReference(reference));
    if (!existsSync(file)) return false;
    rmSync(file);
    return true;
  }

  findImage(reference: string): Image | undefined {
    return readJsonIfThere(this.#imageFile(toFullReference(reference))) as Image | undefined;
  }

  listImages(): Image[] {
    const folder = join(this.folder, 'images');
    return readdirSync(folder).map((name) => readJson(join(folder, name)) as Image);
  }

  #imageFile(reference: string): string {
    return join(this.folder, 'images', `${createHash('sha256').update(reference).digest('hex')}.json`);
  }
}

/** `alpine` is `docker.io/library/alpine:latest`. */
export function toFullReference(name: string): string {
  const tagged = /:[^/]+$|@/.test(name) ? name : `${name}:latest`;
  if (/^[^/]*[.:][^/]*\//.test(tagged) || tagged.startsWith('localhost/')) return tagged;
  return `docker.io/${tagged.includes('/') ? '' : 'library/'}${tagged}`;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}

function readJsonIfThere(file: string): unknown {
  try {
    return readJson(file);
  } catch {
    return undefined;
  }
}

function writeJson(file: string, value: unknown): void {
  const unfinished = `${file}.${randomBytes(4).toString('hex')}`;
  writeFileSync(unfinished, JSON.stringify(value));
  renameSync(unfinished, file);
}
