import { readFileSync, readdirSync } from 'node:fs';
import { requireLastingCell } from '../../src/core/capabilities.ts';
import type { Cell } from '../../src/core/cell.ts';
import { toHotcellError } from '../../src/core/errors.ts';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import type { OciDriver } from '../../src/drivers/oci/driver.ts';
import { waitFor } from '../support/leftovers.ts';
import { descendantsOf, listAll, type SeenProcess } from '../support/processes.ts';
import { bash, finish } from './cells.ts';
import { makeLog, makeOciDriver } from './rootless-driver.ts';

/** Somebody who is not root ends cells that take commands, in every way there is. What came of it goes to stdout. */
const stateDirectory = process.argv[2] ?? '';
const rounds = Number(process.argv[3]);

const { log, said } = makeLog();
const makeDriver = (): OciDriver => makeOciDriver(stateDirectory, log);
const spec = { name: 'rootless-ends', kind: 'worker', limits: DEFAULT_LIMITS } as const;

const isAgent = ({ pid }: SeenProcess): boolean =>
  /^NSpid:\t\d+\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
const isRuntime = ({ words }: SeenProcess): boolean => /^\S*crun .* run /.test(words);

/** Kills, of all that these cells are made of, what fits. */
function killAll(fits: (seen: SeenProcess) => boolean, among: readonly SeenProcess[]): void {
  for (const seen of among.filter((one) => fits(one))) process.kill(seen.pid, 'SIGKILL');
}

const ENDS: readonly ((cells: readonly Cell[]) => unknown)[] = [
  (cells) => Promise.all(cells.map((cell) => cell.dispose())),
  () => killAll(isAgent, descendantsOf(process.pid)),
  async (cells) => {
    killAll(isRuntime, descendantsOf(process.pid));
    await Promise.all(cells.map((cell) => cell.dispose()));
  },
];

/** Cells that say more than any pipe holds, so that nobody has read all of it when they end. */
async function endCells(driver: OciDriver, end: (typeof ENDS)[number]): Promise<void> {
  const cells = await Promise.all([1, 2, 3].map(() => driver.create(spec)));
  const execs = await Promise.all(cells.map((cell) => cell.exec(bash('yes'))));
  const ended = execs.map((exec) => finish(exec).catch(() => {}));
  await Promise.all([end(cells), ...ended, ...cells.map(({ gone }) => gone)]);
}

/** A program of the cell is the same user as we are, and its agent's. */
async function tryToUnseal(driver: OciDriver): Promise<string> {
  const cell = await driver.create(spec);
  const places = '/run/hotcell/out /proc/1/fd/1';
  const exec = await cell.exec(
    bash(
      `for place in ${places}; do chmod 666 $place; echo forged >$place; done 2>/dev/null; ls -l /run/hotcell`,
    ),
  );
  exec.closeStdin();
  const { stdout } = await finish(exec);
  await cell.dispose();
  return [...stdout.matchAll(/^p(\S+).* (\w+)$/gm)].map(([, mode, name]) => `${name} ${mode}`).join(', ');
}

/** Its agent dies while no server is there: the next one finds the seal, and nobody behind it. */
async function adoptDead(): Promise<string> {
  const store = '0123456789ab';
  const lasting = { ...spec, kind: 'session', lasting: { store } } as const;
  const first = makeDriver();
  const { record } = requireLastingCell(await first.create(lasting));
  const [agent] = descendantsOf(process.pid).filter((seen) => isAgent(seen));
  await first.close();
  if (agent === undefined) return 'no agent';
  process.kill(agent.pid, 'SIGKILL');
  await waitFor('its runtime has ended', () => !listAll().some((seen) => isRuntime(seen) && isOurs(seen)));
  const second = makeDriver();
  const adopted = await second.lasting.adopt(record, lasting).then(
    () => 'adopted',
    (error: unknown) => toHotcellError(error).code,
  );
  await waitFor('it is gone', () => second.list().length === 0);
  await second.lasting.reclaim(store, new Set());
  await second.close();
  return adopted;
}

const isOurs = ({ words }: SeenProcess): boolean => words.includes(stateDirectory);

const driver = makeDriver();
const seals = await tryToUnseal(driver);
for (let round = 0; round < rounds; round++) for (const end of ENDS) await endCells(driver, end);
await driver.close();
const adopted = await adoptDead();
const left = [...readdirSync(stateDirectory), ...descendantsOf(process.pid).map(({ words }) => words)];
process.stdout.write(JSON.stringify({ seals, adopted, said, left }));
