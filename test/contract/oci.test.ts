import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { OciDriver, type OciOptions } from '../../src/drivers/oci/driver.ts';
import type { RuntimeName } from '../../src/drivers/oci/runtime.ts';
import { findTraces } from '../support/leftovers.ts';
import { testThatNeeds, whyNotOci } from '../support/needs.ts';
import { tmpdirOnTmpfs } from '../support/server.ts';
import { OCI_EXEMPTIONS } from './exemptions.ts';
import { driverContract } from './driver-contract.ts';

const stateDirectory = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-contract-'));

function optionsFor(runtime: RuntimeName): OciOptions {
  return {
    runtime,
    stateDirectory,
    rootfs: undefined,
    guest: fileURLToPath(new URL('../../guest', import.meta.url)),
    tools: bundledTools(),
    weaker: [],
    log: SILENT_LOG,
  };
}

for (const runtime of ['crun', 'runc', 'runsc'] as const) {
  const options = optionsFor(runtime);
  driverContract({
    title: `[CX-09, SC-03] oci on ${runtime}`,
    test: testThatNeeds(await whyNotOci(options)),
    exempt: OCI_EXEMPTIONS[runtime],
    makeDriver: () => new OciDriver(options),
  });
}

afterAll(() => rmSync(stateDirectory, { recursive: true, force: true }));

test('[SC-02] nothing of any cell is left on the host', () => {
  expect(findTraces(stateDirectory)).toEqual({ processes: [], cgroups: [], mounts: [], folders: [] });
});
