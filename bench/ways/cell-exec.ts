import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import type { Cell } from '../../src/core/cell.ts';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { OciDriver } from '../../src/drivers/oci/driver.ts';
import {
  commandFor,
  commandThatWrites,
  fileNameOf,
  requireHello,
  type LanguageName,
} from '../support/hello.ts';
import type { Way } from './way.ts';

/**
 * The interpreter started in one long-lived oci cell by its agent, which is what a session pays. The cell is not held to
 * a share of the CPU.
 */
export async function makeCellExecWay(
  stack: AsyncDisposableStack,
  scratch: string,
  languages: readonly LanguageName[],
): Promise<Way> {
  const driver = new OciDriver({
    runtime: 'crun',
    stateDirectory: join(scratch, 'cells'),
    rootfs: undefined,
    guest: fileURLToPath(new URL('../../guest', import.meta.url)),
    tools: bundledTools(),
    weaker: [],
    log: SILENT_LOG,
  });
  stack.defer(() => driver.close());
  const cell = await driver.create({
    name: 'bench',
    kind: 'session',
    limits: { ...DEFAULT_LIMITS, cpus: availableParallelism(), memoryBytes: 1024 ** 3, processes: 256 },
  });
  const places = new Map(languages.map((language) => [language, join(cell.workdir, fileNameOf(language))]));
  for (const [language, file] of places) await exec(cell, commandThatWrites(language, file));
  return {
    name: 'cell exec',
    languages: new Set(languages),
    async hello(language) {
      const startedAt = performance.now();
      const answer = await exec(cell, commandFor(language, places.get(language) ?? ''));
      const ms = performance.now() - startedAt;
      requireHello(`cell exec ${language}`, answer);
      return ms;
    },
  };
}

async function exec(
  cell: Cell,
  argv: [string, ...string[]],
): Promise<{ stdout: string; code: number | null }> {
  const running = await cell.exec({ argv, env: {} });
  running.closeStdin();
  let stdout = '';
  let code: number | null = null;
  for await (const event of running.events) {
    if (event.type === 'stdout') stdout += Buffer.from(event.bytes).toString();
    if (event.type === 'exit' && event.outcome.kind === 'exited') code = event.outcome.code;
  }
  return { stdout, code };
}
