import { renderTable } from '../report/markdown-table.ts';
import type { HotcellServer } from '../server/hotcell-server.ts';
import { progress } from '../support/progress.ts';
import { summarize } from '../support/statistics.ts';
import type { Measured } from './measured.ts';
import { createSession, destroySession } from './session-api.ts';

const MOST_MS = 150;
const ROUNDS_BEFORE = 2;
/** An engine takes a while for each. */
const MOST_ROUNDS_ON_DOCKER = 10;

/** From the request until a command can be sent, and back until nothing is left. */
export async function measureCreation(
  { oci, onDocker }: { readonly oci: HotcellServer; readonly onDocker: HotcellServer | undefined },
  rounds: number,
): Promise<Measured> {
  const rows: string[][] = [];
  let onOci = Number.NaN;
  for (const [name, server] of [['oci', oci] as const, ['docker', onDocker] as const]) {
    if (server === undefined) continue;
    const times = { create: [] as number[], destroy: [] as number[] };
    const most = server === oci ? rounds : Math.min(rounds, MOST_ROUNDS_ON_DOCKER);
    for (let round = -ROUNDS_BEFORE; round < most; round++) {
      if (round % 10 === 0) progress(`creation on ${name}: round ${round} of ${most}`);
      const startedAt = performance.now();
      const id = await createSession(server, `bench-${round + ROUNDS_BEFORE}`);
      const createdAt = performance.now();
      await destroySession(server, id);
      if (round < 0) continue;
      times.create.push(createdAt - startedAt);
      times.destroy.push(performance.now() - createdAt);
    }
    const [create, destroy] = [summarize(times.create), summarize(times.destroy)];
    if (server === oci) onOci = create.median;
    rows.push([name, `${create.median.toFixed(0)} / ${create.p95.toFixed(0)}`, destroy.median.toFixed(0)]);
  }
  return {
    title: 'Creation of a session',
    table: renderTable(['driver', 'create, ms (median / p95)', 'delete, ms'], rows),
    requirements: [
      { text: `creation on oci ≤ ${MOST_MS} ms`, value: onOci, holds: (value) => value <= MOST_MS },
    ],
  };
}
