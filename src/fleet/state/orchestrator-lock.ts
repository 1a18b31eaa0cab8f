import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import * as z from 'zod';
import { HotcellError } from '../../core/errors.ts';
import type { FleetPaths } from '../names.ts';
import { isFileLockHeld, tryHoldFileLock } from './file-lock.ts';
import { errnoOf } from '../../lib/errno.ts';

export const OrchestratorRecord = z.looseObject({
  pid: z.int().positive(),
  started_at: z.string(),
  mode: z.string().nullish(),
  host: z.string().nullish(),
  /** When the kernel started the process, in its own count: pids come back, this does not. Linux only. */
  process_start: z.string().nullish(),
});
export type OrchestratorRecord = z.infer<typeof OrchestratorRecord>;

/** The right to work on a feature. It ends with the process, if not before. */
export interface OrchestratorHold extends Disposable {
  readonly record: OrchestratorRecord;
}

/** Throws FLEET_BUSY, with pid and start of the other, when a living process works on the feature. */
export function takeOrchestrator(
  paths: FleetPaths,
  { mode }: { readonly mode?: string } = {},
): OrchestratorHold {
  const lock = tryHoldFileLock(paths.orchestratorLock);
  if (lock === undefined) throw toBusy(paths);
  const record: OrchestratorRecord = {
    pid: process.pid,
    started_at: new Date().toISOString(),
    mode: mode ?? null,
    host: hostname(),
    process_start: readProcessStart(process.pid) ?? null,
  };
  const draft = `${paths.orchestrator}.tmp`;
  writeFileSync(draft, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o644 });
  renameSync(draft, paths.orchestrator);
  let isHeld = true;
  const letGo = (): void => {
    if (!isHeld) return;
    isHeld = false;
    // While it is still held: afterwards it could be the record of the next one.
    rmSync(paths.orchestrator, { force: true });
    lock[Symbol.dispose]();
  };
  return { record, [Symbol.dispose]: letGo };
}

/** The process that works on the feature now; what a dead one left behind does not count. */
export function findOrchestrator(paths: FleetPaths): OrchestratorRecord | undefined {
  if (!isFileLockHeld(paths.orchestratorLock)) return undefined;
  const record = readRecord(paths.orchestrator);
  // SECURITY: signals go to this pid. Right after a start the record may still be that of one that died.
  return record !== undefined && isSameProcess(record) ? record : undefined;
}

/** Throws FLEET_BUSY when somebody works on the feature; takes nothing. */
export function requireNoOrchestrator(paths: FleetPaths): void {
  if (isFileLockHeld(paths.orchestratorLock)) throw toBusy(paths);
}

function toBusy(paths: FleetPaths): HotcellError {
  const other = findOrchestrator(paths);
  const who =
    other === undefined
      ? 'another process'
      : `process ${other.pid}${other.host === hostname() ? '' : ` of ${other.host ?? 'another host'}`}, started ${other.started_at},`;
  return new HotcellError('FLEET_BUSY', `${who} works on feature ${paths.feature}`, {
    hint: `Watch it with hotcell fleet status --feature ${paths.feature}, or end it with hotcell fleet stop --feature ${paths.feature}.`,
  });
}

function readRecord(file: string): OrchestratorRecord | undefined {
  try {
    return OrchestratorRecord.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** Of another host nothing can be said; such a record is believed, and never signalled. */
function isSameProcess(record: OrchestratorRecord): boolean {
  if (record.host !== hostname()) return true;
  const start = readProcessStart(record.pid);
  return start === undefined || typeof record.process_start !== 'string'
    ? isAlive(record.pid)
    : start === record.process_start;
}

function readProcessStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before it may hold spaces and brackets.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errnoOf(error) === 'EPERM';
  }
}
