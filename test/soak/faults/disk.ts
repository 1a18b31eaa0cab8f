import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errnoOf } from '../../../src/lib/errno.ts';
import { runCommand } from '../../../src/drivers/process/run-command.ts';
import type { Harm } from './fault.ts';

const BITE = Buffer.alloc(1024 * 1024, 1);
const SHORTEST_MS = 300;
const MORE_MS = 1500;

/** Not a byte is left where sessions are kept, for a while. */
export const fillDisk: Harm = async ({ dataDirectory }, { dice }) => {
  // What was written before is on the disk: only what comes now finds it full.
  await runCommand(['sync', '-f', dataDirectory]);
  const ballast = join(dataDirectory, 'ballast');
  try {
    fill(ballast);
    // The length of the fault, not a wait for anything.
    await sleep(SHORTEST_MS + dice * MORE_MS);
  } finally {
    rmSync(ballast, { force: true });
  }
};

function fill(file: string): void {
  const descriptor = openSync(file, 'w');
  try {
    for (let size = BITE.length; size >= 1;) {
      try {
        writeSync(descriptor, BITE, 0, size);
      } catch (error) {
        if (errnoOf(error) !== 'ENOSPC') throw error;
        size = Math.floor(size / 2);
      }
    }
  } finally {
    closeSync(descriptor);
  }
}
