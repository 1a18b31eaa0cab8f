import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe } from 'vitest';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import type { Cell } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import type { Exec, ExecRequest } from '../../src/core/exec.ts';
import { DEFAULT_LIMITS, type Limits } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { OciDriver } from '../../src/drivers/oci/driver.ts';
import { PreloadDriver } from '../../src/drivers/preload/driver.ts';
import { toBunRequest, type BunSubject } from '../../src/workbench/bun-request.ts';
import { readDenials } from '../../src/workbench/denials.ts';
import type { Denial } from '../../src/wire/permissions.ts';
import { finish, type Finished } from '../contract/cells.ts';
import { describeThatNeeds, whyNotOci } from './needs.ts';
import { tmpdirOnTmpfs } from './server.ts';

const GUEST = fileURLToPath(new URL('../../guest', import.meta.url));

/** A kind of cell in which code of a workbench runs, with the same hooks in each. */
export interface CodePlace {
  readonly name: 'preload' | 'oci';
  readonly stateDirectory: string;
  readonly driver: Driver;
  /** Without them only the walls are left. */
  readonly hooks: boolean;
}

export interface CodeOptions extends Partial<BunSubject> {
  readonly limits?: Partial<Limits>;
  /** Called as soon as it runs. */
  onStart?(exec: Exec, cell: Cell): void;
}

export interface RanCode extends Finished {
  readonly denials: readonly Denial[];
}

function makePlace(name: CodePlace['name'], hooks = true): CodePlace {
  const stateDirectory = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-code-'));
  chmodSync(stateDirectory, 0o711);
  const common = { stateDirectory, guest: GUEST, tools: bundledTools() };
  const driver =
    name === 'preload'
      ? new PreloadDriver({ ...common, weaker: process.geteuid?.() === 0 ? [] : ['identity'] })
      : new OciDriver({ ...common, weaker: [], runtime: 'auto', rootfs: undefined, log: SILENT_LOG });
  return { name, stateDirectory, driver, hooks };
}

/** The same tests in each kind of place, and behind the walls of the preload driver alone. */
export async function describeCodePlacesAndWalls(tests: (place: CodePlace) => void): Promise<void> {
  describe('preload, without the hooks', () => {
    tests(makePlace('preload', false));
  });
  await describeCodePlaces(tests);
}

/** The same tests in each kind of place. */
export async function describeCodePlaces(tests: (place: CodePlace) => void): Promise<void> {
  describe('preload', () => {
    tests(makePlace('preload'));
  });
  const oci = makePlace('oci');
  const missing = await whyNotOci({
    runtime: 'auto',
    stateDirectory: oci.stateDirectory,
    rootfs: undefined,
    guest: GUEST,
    tools: bundledTools(),
    weaker: [],
    log: SILENT_LOG,
  });
  describeThatNeeds(missing)('oci', () => {
    tests(oci);
  });
}

export const onlyPreload = (): CodePlace => makePlace('preload');

export async function closePlace({ driver, stateDirectory }: CodePlace): Promise<void> {
  await driver.close();
  rmSync(stateDirectory, { recursive: true, force: true });
  rmSync(`${stateDirectory}-preload`, { recursive: true, force: true });
}

/** A cell for code, and the folder on the host in which its code stands. */
export async function makeCodeCell(
  place: CodePlace,
  code: string,
  limits: Partial<Limits> = {},
): Promise<{ cell: Cell; folder: string }> {
  const folder = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-main-'));
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'main.ts'), code);
  const cell = await place.driver.create({
    name: 'code',
    kind: 'run',
    limits: { ...DEFAULT_LIMITS, cpus: 2, memoryBytes: 512 * 1024 * 1024, ...limits },
    folders: [
      { name: 'code', folder, at: '/code' },
      { name: 'packages', folder, at: '/packages' },
    ],
  });
  return { cell, folder };
}

/** Runs code to its end, as a workbench does. */
export async function runCode(place: CodePlace, code: string, options: CodeOptions = {}): Promise<RanCode> {
  const { cell, folder } = await makeCodeCell(place, code, options.limits);
  try {
    const { permissions = [], values = {}, network } = options;
    const request = toBunRequest({ permissions, values, network });
    const exec = await cell.exec(place.hooks ? request : withoutHooks(request));
    exec.closeStdin();
    options.onStart?.(exec, cell);
    const end = await finish(exec);
    return { ...end, ...readDenials(end.stderr) };
  } finally {
    await cell.dispose();
    rmSync(folder, { recursive: true });
  }
}

function withoutHooks(request: ExecRequest): ExecRequest {
  const [program, ...rest] = request.argv;
  const at = rest.indexOf('--preload');
  return { ...request, argv: [program, ...rest.toSpliced(at, 2)] };
}
