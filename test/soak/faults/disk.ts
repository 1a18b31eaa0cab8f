import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runCommand } from '../../../src/drivers/process/run-command.ts';
import { fillWith } from '../../support/own-disk.ts';
import type { Harm } from './fault.ts';

const SHORTEST_MS = 300;
const MORE_MS = 1500;

/** Not a byte is left where sessions are kept, for a while. */
export const fillDisk: Harm = async ({ dataDirectory }, { dice }) => {
  // What was written before is on the disk: only what comes now finds it full.
  await runCommand(['sync', '-f', dataDirectory]);
  const ballast = join(dataDirectory, 'ballast');
  try {
    fillWith(ballast);
    // The length of the fault, not a wait for anything.
    await sleep(SHORTEST_MS + dice * MORE_MS);
  } finally {
    rmSync(ballast, { force: true });
  }
};
