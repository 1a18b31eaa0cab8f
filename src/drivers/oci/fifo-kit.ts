import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { CellOwner } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { OpenMount } from './config-json.ts';
import { runCommand } from '../process/run-command.ts';

export const FIFO_NAMES = ['in', 'out', 'err', 'status', 'hold'] as const;
const BATCH = 8;

/**
 * A folder with the FIFOs of one exec. FIFOs, because a program in the cell may open /dev/stdout again, which works
 * neither with the socket pairs that Node calls pipes nor with a pipe that belongs to another user.
 */
export interface FifoKit {
  readonly directory: string;
  /** For the words of the runtime itself; outside the folder, since that is seen in the cell. */
  readonly log: string;
  path(name: (typeof FIFO_NAMES)[number]): string;
}

/** Node cannot make FIFOs; a helper program makes them in batches, and kits are used again. */
export class FifoKits {
  readonly #directory: string;
  readonly #free: FifoKit[] = [];
  /** Another server may have left kits in the same folder. */
  readonly #prefix = randomBytes(4).toString('hex');
  #made = 0;
  #making: Promise<void> | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** `owner` is the cell's user on the host, the only one besides root who may enter the folder. */
  async take({ uid, gid }: CellOwner): Promise<FifoKit> {
    for (;;) {
      const kit = this.#free.pop();
      if (kit !== undefined) {
        await chown(kit.directory, uid, gid);
        return kit;
      }
      this.#making ??= this.#make().finally(() => (this.#making = undefined));
      await this.#making;
    }
  }

  /** Precondition: nobody has any of the FIFOs open any more. */
  giveBack(kit: FifoKit): void {
    this.#free.push(kit);
  }

  /** For a kit whose FIFOs were sealed. */
  async discard(kit: FifoKit): Promise<void> {
    await rm(kit.directory, { recursive: true, force: true });
    await rm(kit.log, { force: true });
  }

  /** A kit that is in use already, made by another server. */
  reopen(name: string): FifoKit {
    return toKit(join(this.#directory, basename(name)));
  }

  /** Removes kits that other servers left, but for these. */
  async sweep(keep: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#directory).catch(() => []);
    const kits = names.filter((name) => !name.endsWith('.log') && !name.startsWith(this.#prefix));
    for (const name of kits) if (!keep.has(name)) await this.discard(this.reopen(name));
  }

  async #make(): Promise<void> {
    const kits = Array.from({ length: BATCH }, () =>
      toKit(join(this.#directory, `${this.#prefix}-${this.#made++}`)),
    );
    // gVisor looks up the mounts from inside the cell's user namespace, so that must get past this folder.
    await mkdir(this.#directory, { recursive: true, mode: 0o711 });
    for (const kit of kits) await mkdir(kit.directory, { recursive: true, mode: 0o700 });
    const paths = kits.flatMap((kit) => [kit.log, ...FIFO_NAMES.map((name) => kit.path(name))]);
    const result = await runCommand(['mkfifo', '-m', '666', ...paths]);
    if (result.code !== 0)
      throw new HotcellError('DRIVER_UNAVAILABLE', `mkfifo failed: ${result.stderr.trim()}`);
    this.#free.push(...kits);
  }
}

/**
 * The mounts that bring the FIFOs into a cell. gVisor lets nobody write to a FIFO in a read-only mount, and an agent that
 * lasts holds both ends of both.
 * SECURITY: so it gets every FIFO by itself, because a writable folder would be a place on the host to fill.
 */
export function toChannelMounts(
  kit: FifoKit,
  destination: string,
  cell: { readonly ownKernel: boolean; readonly lasting: boolean },
): OpenMount[] {
  if (!cell.ownKernel) return [{ source: kit.directory, destination, writable: false }];
  return FIFO_NAMES.map((name) => ({
    source: kit.path(name),
    destination: join(destination, name),
    writable: name === 'in' ? cell.lasting : name !== 'hold',
  }));
}

/**
 * Once both sides have opened the FIFOs nobody else may.
 * SECURITY: the agent of a cell and its programs are one user; without this a program could speak in the agent's name.
 * Without root that user is ourselves, so that we could not open them either, and need not: see `Channel.seal`. The program
 * cannot take the seal off: it sees them in a read-only mount, and has no capability to pass over a mode.
 */
export async function sealKit(kit: FifoKit): Promise<void> {
  await Promise.all(FIFO_NAMES.map((name) => chmod(kit.path(name), 0)));
}

/** Before they are opened again by another server than the one that sealed them; without root that takes the right to. */
export async function unsealKit(kit: FifoKit): Promise<void> {
  if (process.geteuid?.() === 0) return;
  await Promise.all(FIFO_NAMES.map((name) => chmod(kit.path(name), 0o600)));
}

function toKit(directory: string): FifoKit {
  return { directory, log: `${directory}.log`, path: (name) => join(directory, name) };
}
