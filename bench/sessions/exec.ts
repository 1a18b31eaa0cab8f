import { setTimeout as sleep } from 'node:timers/promises';
import type { OpenDocker } from '../docker/open-docker.ts';
import { renderTable } from '../report/markdown-table.ts';
import type { HotcellServer } from '../server/hotcell-server.ts';
import type { ForeignLoad } from '../support/foreign-load.ts';
import { progress } from '../support/progress.ts';
import { runCommand } from '../support/run-command.ts';
import { shuffled, summarize } from '../support/statistics.ts';
import { createSession, destroySession, execute } from './session-api.ts';
import type { Measured } from './measured.ts';

const SETTLE_MS = 20;
const ROUNDS_BEFORE = 3;
const MOST_TO_BARE = 5;
const LEAST_FASTER_THAN_DOCKER = 4;

interface Compared {
  readonly oci: HotcellServer;
  readonly onDocker: HotcellServer | undefined;
  readonly docker: OpenDocker | undefined;
}

/** `true` by bash: started by hand, in a session over HTTP, by `docker exec`. */
export async function measureExec(
  { oci, onDocker, docker }: Compared,
  options: { rounds: number; foreign: ForeignLoad },
): Promise<Measured> {
  const servers = [
    ['session, oci', oci],
    ...(onDocker === undefined ? [] : [['session, docker', onDocker]]),
  ] as [string, HotcellServer][];
  const sessions = await Promise.all(
    servers.map(async ([name, server]) => ({ name, server, id: await createSession(server, 'bench-exec') })),
  );
  const ways = new Map<string, () => Promise<unknown>>([['bare', () => runCommand(['bash', '-c', 'true'])]]);
  for (const { name, server, id } of sessions) ways.set(name, () => execute(server, id, 'true'));
  if (docker !== undefined)
    ways.set('docker exec', () => docker.engine.exec(docker.container, ['bash', '-c', 'true']));
  const samples = new Map([...ways.keys()].map((name) => [name, [] as number[]]));
  for (let round = -ROUNDS_BEFORE; round < options.rounds; round++) {
    if (round % 10 === 0) progress(`exec: round ${round} of ${options.rounds}`);
    await options.foreign.pause(SETTLE_MS);
    for (const [name, run] of shuffled([...ways])) {
      await sleep(SETTLE_MS);
      const startedAt = performance.now();
      await run();
      if (round >= 0) samples.get(name)?.push(performance.now() - startedAt);
    }
  }
  for (const { server, id } of sessions) await destroySession(server, id);
  const found = new Map([...samples].map(([name, ms]) => [name, summarize(ms)]));
  const bare = found.get('bare')?.median ?? Number.NaN;
  const session = found.get('session, oci')?.median ?? Number.NaN;
  const byHand = found.get('docker exec')?.median;
  const rows = [...found].map(([name, { median, p95 }]) => [
    name,
    median.toFixed(1),
    p95.toFixed(1),
    (median / bare).toFixed(2),
    byHand === undefined ? '–' : (median / byHand).toFixed(3),
  ]);
  return {
    title: '`true` by bash',
    table: renderTable(['way', 'ms', 'p95', '× bare', '× docker exec'], rows),
    requirements: [
      {
        text: `exec over HTTP, oci / bare ≤ ${MOST_TO_BARE}`,
        value: session / bare,
        holds: (value) => value <= MOST_TO_BARE,
      },
      {
        text: `docker exec / exec over HTTP, oci ≥ ${LEAST_FASTER_THAN_DOCKER}`,
        value: byHand === undefined ? undefined : byHand / session,
        holds: (value) => value >= LEAST_FASTER_THAN_DOCKER,
      },
    ],
  };
}
