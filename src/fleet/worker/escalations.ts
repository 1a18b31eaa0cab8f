import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { FleetPaths } from '../names.ts';
import { withFileLock } from '../state/file-lock.ts';

const Escalations = z.looseObject({ escalations: z.array(z.unknown()).default([]) });

/** `.mahabharatha/state/escalations.json`: questions of agents to people, for programs that show them. */
export function noteEscalation(
  { stateFolder, feature }: FleetPaths,
  escalation: { readonly task_id: string; readonly worker_id: number; readonly message: string },
): void {
  const file = join(stateFolder, 'escalations.json');
  withFileLock(join(stateFolder, 'escalations.lock'), () => {
    const known = readKnown(file);
    const entry = { ...escalation, feature, timestamp: new Date().toISOString(), resolved: false };
    const text = JSON.stringify({ ...known, escalations: [...known.escalations, entry] }, undefined, 2);
    writeFileSync(`${file}.tmp`, `${text}\n`);
    renameSync(`${file}.tmp`, file);
  });
}

/** One that nobody can read is begun anew. */
function readKnown(file: string): z.infer<typeof Escalations> {
  try {
    return Escalations.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return { escalations: [] };
  }
}
