import type { Cell, CellImage } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError, messageOf, toCancelError } from '../core/errors.ts';
import type { Exec, ExecEvent, ExecOutcome, ExecRequest, Usage } from '../core/exec.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { caVariables } from '../egress/ca-bundle.ts';
import type { CellNetwork, OpenNetwork } from '../egress/cell-network.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import type { Ecosystem, InstallPlan } from './ecosystem.ts';
import type { InstallRequest } from './install-request.ts';

export interface InstallCellParts {
  readonly driver: Driver;
  readonly ecosystem: Ecosystem;
  /** Has the installer in it, for drivers that use images. */
  readonly image: CellImage | undefined;
  readonly limits: Limits;
  readonly openNetwork: OpenNetwork;
  /** Authorities that the cell trusts, in PEM. */
  readonly caBundle: Uint8Array | undefined;
  readonly log: Log;
}

export interface Installation<T> {
  readonly request: InstallRequest;
  readonly signal: AbortSignal;
  onProgress(text: string): void;
  /** Takes the archive of what was installed. SECURITY: hostile bytes. */
  take(archive: AsyncIterable<Uint8Array>): Promise<T>;
}

const SET = 'set';
const CA_BUNDLE = 'ca-certificates.crt';
const KEPT_WORDS = 16 * 1024;
/** So much of the disk of the cell is taken when an installation fails for want of it. */
const FULL = 0.95;

/** Installs packages in a cell that is made for it, reaches the registry and nothing else, and runs nothing of them. */
export async function installInCell<T>(parts: InstallCellParts, installation: Installation<T>): Promise<T> {
  const { driver, image, limits, log } = parts;
  const { request, signal } = installation;
  throwIfEnded(signal);
  const cell = await driver.create({
    name: 'packages',
    kind: 'session',
    limits,
    ...(image === undefined ? {} : { image }),
  });
  const deadline = AbortSignal.timeout(limits.wallTimeMs);
  const ended = AbortSignal.any([signal, deadline]);
  let network: CellNetwork | undefined;
  try {
    network = await parts.openNetwork([parts.ecosystem.name], async (helper) => cell.exec(helper));
    return await install(new Workplace(cell, network, parts), parts.ecosystem, {
      ...installation,
      signal: ended,
    });
  } catch (error) {
    if (deadline.aborted && !signal.aborted) throw tooSlow(request, limits);
    throwIfEnded(signal);
    throw error;
  } finally {
    network?.close();
    await cell.dispose().catch((error: unknown) => {
      log.error({ cell: cell.id, error: messageOf(error) }, 'a cell cannot be removed');
    });
  }
}

async function install<T>(place: Workplace, ecosystem: Ecosystem, installation: Installation<T>): Promise<T> {
  const { request, signal } = installation;
  const plan = ecosystem.plan(request);
  await place.prepare(plan);
  installation.onProgress(`installing ${request.specs.map(({ name }) => name).join(', ')}`);
  const mark = place.network.mark();
  const { outcome, usage, words } = await finish(await place.install(plan, request), signal);
  if (outcome.kind !== 'exited' || outcome.code !== 0) {
    const refusals = place.network.refusalsSince(mark);
    const isTooLarge = usage.reached.includes('memoryBytes') || (usage.diskShare ?? 0) >= FULL;
    throw ecosystem.explain({ request, words, refusals, isTooLarge, diskBytes: place.diskBytes });
  }
  // Nothing else has to be fetched.
  place.network.close();
  installation.onProgress('storing what was installed');
  return installation.take(read(await place.pack(plan), signal));
}

/** The cell with its way out. */
class Workplace {
  readonly network: CellNetwork;
  readonly #cell: Cell;
  readonly #parts: InstallCellParts;

  constructor(cell: Cell, network: CellNetwork, parts: InstallCellParts) {
    this.#cell = cell;
    this.network = network;
    this.#parts = parts;
  }

  get diskBytes(): number {
    return this.#parts.limits.diskBytes;
  }

  async prepare({ files }: InstallPlan): Promise<void> {
    const { caBundle } = this.#parts;
    await this.#cell.files.write([
      ...files.map(({ name, content }) => ({ path: `${SET}/${name}`, content: Buffer.from(content) })),
      ...(caBundle === undefined ? [] : [{ path: CA_BUNDLE, content: caBundle }]),
    ]);
    await this.network.untilReady();
  }

  install({ argv, env }: InstallPlan, request: InstallRequest): Promise<Exec> {
    return this.#start({
      argv,
      env: {
        ...this.network.variables,
        ...(this.#parts.caBundle === undefined ? {} : caVariables(`{workdir}/${CA_BUNDLE}`)),
        HOME: '{workdir}/home',
        TMPDIR: '{workdir}',
        ...env,
      },
      // What stands in a variable is nobody's placeholder.
      verbatim: { argv: [], env: request.registry.variables },
      reach: { read: [], write: [], port: this.network.port, programs: false },
    });
  }

  pack({ results }: InstallPlan): Promise<Exec> {
    return this.#start({
      argv: ['tar', '-cf', '-', '--', ...results],
      env: {},
      reach: { read: [], write: [], port: undefined, programs: false },
    });
  }

  async #start(request: ExecRequest): Promise<Exec> {
    const exec = await this.#cell.exec({ ...request, cwd: `${this.#cell.workdir}/${SET}` });
    exec.closeStdin();
    return exec;
  }
}

interface Finished {
  readonly outcome: ExecOutcome;
  readonly usage: Usage;
  readonly words: string;
}

async function finish(exec: Exec, signal: AbortSignal): Promise<Finished> {
  const words = new CappedBytes(KEPT_WORDS);
  for await (const event of eventsOf(exec, signal)) {
    if (event.type === 'exit') return { outcome: event.outcome, usage: event.usage, words: words.text() };
    if (event.type === 'stderr') words.push(event.bytes);
  }
  throw new HotcellError('CELL_LOST', 'the cell of an installation was lost');
}

/** What a command prints. Throws when it fails. */
async function* read(exec: Exec, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const event of eventsOf(exec, signal)) {
    if (event.type === 'stdout') yield event.bytes;
    if (event.type === 'exit' && (event.outcome.kind !== 'exited' || event.outcome.code !== 0)) {
      throw new HotcellError('CELL_LOST', 'what was installed cannot be read from its cell');
    }
  }
}

/** Ends the command when nobody waits for it any more. */
async function* eventsOf(exec: Exec, signal: AbortSignal): AsyncGenerator<ExecEvent> {
  // Whoever cannot be killed goes with the cell.
  const kill = (): void => void exec.kill('cancelled').catch(() => {});
  if (signal.aborted) kill();
  signal.addEventListener('abort', kill, { once: true });
  try {
    yield* exec.events;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function tooSlow({ specs }: InstallRequest, { wallTimeMs }: Limits): HotcellError {
  const names = specs.map(({ name }) => name).join(', ');
  return new HotcellError(
    'PACKAGE_UNAVAILABLE',
    `${names} cannot be installed: it takes longer than ${wallTimeMs} ms`,
    { hint: 'Try again later, or have the operator raise the limits of installations.' },
  );
}

function throwIfEnded(signal: AbortSignal): void {
  if (signal.aborted) throw toCancelError(signal);
}
