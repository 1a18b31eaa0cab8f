import { FurnishedCell } from '../cells/furnished-cell.ts';
import { printedBy } from '../cells/printed-by.ts';
import { readOutcome } from '../cells/read-outcome.ts';
import type { CellImage } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError, toCancelError } from '../core/errors.ts';
import type { ExecRequest } from '../core/exec.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
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
const KEPT_WORDS = 16 * 1024;
/** So much of the disk of the cell is taken when an installation fails for want of it. */
const FULL = 0.95;

/** Installs packages in a cell that is made for it, reaches the registry and nothing else, and runs nothing of them. */
export async function installInCell<T>(parts: InstallCellParts, installation: Installation<T>): Promise<T> {
  const { driver, image, limits, caBundle, log } = parts;
  const { request, signal } = installation;
  throwIfEnded(signal);
  const spec = {
    name: 'packages',
    kind: 'packages',
    limits,
    ...(image === undefined ? {} : { image }),
  } as const;
  await using cell = await FurnishedCell.make({ driver, spec, caBundle, log });
  const deadline = AbortSignal.timeout(limits.wallTimeMs);
  try {
    return await install(cell, parts, { ...installation, signal: AbortSignal.any([signal, deadline]) });
  } catch (error) {
    if (deadline.aborted && !signal.aborted) throw tooSlow(request, limits);
    throwIfEnded(signal);
    throw error;
  }
}

async function install<T>(
  cell: FurnishedCell,
  { ecosystem, limits, openNetwork }: InstallCellParts,
  installation: Installation<T>,
): Promise<T> {
  const { request, signal } = installation;
  const plan = ecosystem.plan(request);
  const network = await cell.openNetwork(openNetwork, [ecosystem.name]);
  await cell.files.write(
    plan.files.map(({ name, content }) => ({ path: `${SET}/${name}`, content: Buffer.from(content) })),
  );
  await cell.layAuthorities();
  await network.untilReady();
  const names = request.specs.map(({ name }) => name).join(', ');
  installation.onProgress(`installing ${names}`);
  const mark = network.mark();
  const stderr = new CappedBytes(KEPT_WORDS);
  const { outcome, usage } = await cell.run(toInstall(cell, plan, { request, network }), { signal, stderr });
  if (!readOutcome(outcome).ok) {
    const refusals = network.refusalsSince(mark);
    const isTooLarge = usage.reached.includes('memoryBytes') || (usage.diskShare ?? 0) >= FULL;
    const { diskBytes } = limits;
    throw ecosystem.explain({ request, words: stderr.text(), refusals, isTooLarge, diskBytes });
  }
  // Nothing else has to be fetched.
  await cell.closeNetwork();
  installation.onProgress(`storing ${names}`);
  return installation.take(printedBy(cell.cell, toPack(cell, plan), { signal }));
}

function toInstall(
  { cell, variables }: FurnishedCell,
  { argv, env }: InstallPlan,
  { request, network }: { readonly request: InstallRequest; readonly network: CellNetwork },
): ExecRequest {
  return {
    argv,
    env: { ...variables, HOME: '{workdir}/home', TMPDIR: '{workdir}', ...env },
    // What stands in a variable is nobody's placeholder.
    verbatim: { argv: [], env: request.registry.variables },
    reach: { read: [], write: [], port: network.port, programs: false },
    cwd: `${cell.workdir}/${SET}`,
  };
}

function toPack({ cell }: FurnishedCell, { results }: InstallPlan): ExecRequest {
  return {
    argv: ['tar', '-cf', '-', '--', ...results],
    env: {},
    reach: { read: [], write: [], port: undefined, programs: false },
    cwd: `${cell.workdir}/${SET}`,
  };
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
