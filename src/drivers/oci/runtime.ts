import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../process/find-program.ts';
import { toTraits, type RuntimeTraits } from './runtime-traits.ts';
import { runCommand, type CommandResult } from '../process/run-command.ts';

export const RUNTIMES = ['crun', 'runc', 'runsc'] as const;
export type RuntimeName = (typeof RUNTIMES)[number];

export interface FoundRuntime {
  readonly name: RuntimeName;
  readonly path: string;
  /** Name and version for people, such as `crun 1.8.1`. */
  readonly label: string;
}

export async function findRuntime(name: RuntimeName): Promise<FoundRuntime | undefined> {
  const path = findProgram(name);
  if (path === undefined) return undefined;
  const { stdout, code } = await runCommand([path, '--version']);
  if (code !== 0) return undefined;
  const version = /version\s+(?:release-)?(\S+)/.exec(stdout)?.[1] ?? 'of unknown version';
  return { name, path, label: name === 'runsc' ? `gVisor runsc ${version}` : `${name} ${version}` };
}

/** Words that a runtime wants before the verb. */
function globalFlags(name: RuntimeName, cgroups: boolean): string[] {
  switch (name) {
    case 'crun':
      return cgroups ? [] : ['--cgroup-manager=disabled'];
    case 'runc':
      return [];
    case 'runsc':
      return [
        '--network=none',
        // The FIFOs of the channel live on the host; nothing else of the host can be opened through them.
        '--host-fifo=open',
        // Nothing that is mounted changes while a cell lives; asking the host again for every path is a fifth of the boot.
        '--file-access-mounts=exclusive',
        ...(cgroups ? [] : ['--ignore-cgroups']),
      ];
  }
}

/** runsc keeps `<id>_sandbox:<id>.state` and `.lock` where the others keep a folder `<id>`. */
const RUNSC_RECORD = '_sandbox:';

/** The containers that the entries of a runtime's state folder are about. */
export function toContainerIds(entries: readonly string[]): string[] {
  const ids = entries.filter((name) => !name.startsWith('.')).map((name) => name.split(RUNSC_RECORD)[0]);
  return [...new Set(ids)].filter((id) => id !== undefined);
}

/** The command line of an OCI runtime with its own state folder. */
export class RuntimeCli {
  readonly traits: RuntimeTraits;
  readonly #enter: () => Promise<readonly string[]>;
  readonly #words: readonly string[];
  readonly #stateDirectory: string;

  constructor(options: {
    runtime: FoundRuntime;
    stateDirectory: string;
    /** Put before every command that we start ourselves: the way to where the keeper is. */
    enter: () => Promise<readonly string[]>;
    cgroups: boolean;
  }) {
    const { runtime, stateDirectory } = options;
    this.traits = toTraits(runtime.name);
    this.#enter = options.enter;
    this.#words = [runtime.path, '--root', stateDirectory, ...globalFlags(runtime.name, options.cgroups)];
    this.#stateDirectory = stateDirectory;
  }

  /**
   * For the keeper: starts a container and stays with it until it has ended and the runtime has removed it. With `shared`
   * the host looks at folders that the cell writes to, and may write there itself.
   */
  toRunWords(id: string, bundle: string, { shared }: { readonly shared: boolean }): string[] {
    const flags = shared && this.traits.ownKernel ? ['--file-access-mounts=shared'] : [];
    return [...this.#words, ...flags, 'run', '--bundle', bundle, id];
  }

  kill(id: string): Promise<CommandResult> {
    return this.#call(['kill', id, 'KILL']);
  }

  pause(id: string): Promise<CommandResult> {
    return this.#call(['pause', id]);
  }

  resume(id: string): Promise<CommandResult> {
    return this.#call(['resume', id]);
  }

  delete(id: string): Promise<CommandResult> {
    return this.#call(['delete', '--force', id], { timeoutMs: 20_000 });
  }

  async #call(words: readonly string[], options?: Parameters<typeof runCommand>[1]): Promise<CommandResult> {
    const [program = '', ...rest] = [...(await this.#enter()), ...this.#words, ...words];
    return runCommand([program, ...rest], options);
  }

  /** Does the runtime still have a record of this container? */
  knows(id: string): boolean {
    const records = [id, `${id}${RUNSC_RECORD}${id}.state`];
    return records.some((name) => existsSync(join(this.#stateDirectory, name)));
  }
}
