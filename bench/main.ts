import { openDocker } from './docker/open-docker.ts';
import { measureCells } from './measures/cells.ts';
import { measureLatency } from './measures/latency.ts';
import { measureStart } from './measures/start.ts';
import { measureThroughput } from './measures/throughput.ts';
import { readOptions, USAGE, UsageError, type Options } from './options.ts';
import { toJsonReport } from './report/json-report.ts';
import type { Results } from './report/results.ts';
import { renderReport } from './report/text-report.ts';
import { HotcellServer } from './server/hotcell-server.ts';
import { ForeignLoad } from './support/foreign-load.ts';
import type { LanguageName } from './support/hello.ts';
import { describeMachine, describeVersions } from './support/machine.ts';
import { note, progress } from './support/progress.ts';
import { makeScratch } from './support/scratch.ts';
import { stopAllServices } from './support/services.ts';
import { makeBareWay, programOf } from './ways/bare.ts';
import { makeDockerExecWay } from './ways/docker-exec.ts';
import { makeHotcellWay } from './ways/hotcell-http.ts';
import { makeCellExecWay } from './ways/cell-exec.ts';
import type { WayName } from './ways/way.ts';

const POOL_SIZE = 4;
const THROUGHPUT_LANGUAGES: readonly LanguageName[] = ['python', 'bash'];
const QUIET_CORES = 0.2;
const FIRST_LOOK_MS = 2000;

async function measure(stack: AsyncDisposableStack, options: Options): Promise<Results> {
  const scratch = makeScratch(stack);
  stack.defer(stopAllServices);
  const foreign = new ForeignLoad();
  await foreign.pause(FIRST_LOOK_MS);
  if (foreign.cores > QUIET_CORES) {
    note(`others keep ${foreign.cores.toFixed(1)} cores busy: trust ratios, not milliseconds`);
  }

  const bare = makeBareWay(scratch, options.languages);
  const languages = [...bare.languages];
  progress('starting what is compared');
  const docker = await openDocker(stack, options);
  const cellExec = await makeCellExecWay(stack, scratch, languages);
  const warmServer = await HotcellServer.start({ scratch, languages, poolSize: POOL_SIZE });
  const coldServer = await HotcellServer.start({ scratch, languages, poolSize: 0 });
  const warm = makeHotcellWay('hotcell warm', warmServer, languages);
  const cold = makeHotcellWay('hotcell cold', coldServer, languages);
  const dockerExec =
    docker === undefined ? [] : [await makeDockerExecWay(docker.engine, docker.container, languages)];
  const dockerServers =
    docker === undefined ? [] : await startDockerServers(docker.engine.socket, { scratch, languages });
  const dockerWays = dockerServers.map(({ name, server }) => makeHotcellWay(name, server, languages));
  const quiet = async (): Promise<void> => {
    for (const server of [warmServer, ...dockerServers.map((entry) => entry.server)]) await server.full();
  };

  const latency = await measureLatency(
    [bare, cellExec, ...dockerExec, warm, cold, ...dockerWays],
    languages,
    {
      rounds: options.rounds,
      foreign,
      quiet,
    },
  );
  const notWarm = [warm, ...dockerWays].reduce((sum, way) => sum + way.cells.cold, 0);
  await coldServer[Symbol.asyncDispose]();
  const throughput = await measureThroughput(
    [bare, ...dockerExec, warm, ...dockerWays],
    languages.filter((language) => THROUGHPUT_LANGUAGES.includes(language)),
    { seconds: options.seconds, foreign, quiet },
  );
  for (const { server } of dockerServers) await server[Symbol.asyncDispose]();
  await warmServer[Symbol.asyncDispose]();
  const cells = await measureCells(scratch, languages);
  const start = await measureStart(scratch, options.rounds);
  return {
    machine: await describeMachine(),
    versions: {
      ...(await describeVersions(versionCommands(languages))),
      ...(docker === undefined ? {} : { docker: docker.version }),
    },
    options: { rounds: options.rounds, seconds: options.seconds },
    foreignCores: foreign.cores,
    latency,
    throughput,
    cells,
    start,
    notWarm,
  };
}

/** In a shared cell fewer wait; two are what the default limits allow. */
async function startDockerServers(
  socket: string,
  common: { scratch: string; languages: readonly LanguageName[] },
): Promise<{ name: WayName; server: HotcellServer }[]> {
  const start = async (strategy: string, poolSize: number): Promise<HotcellServer> =>
    HotcellServer.start({
      ...common,
      poolSize,
      settings: ['driver=docker', `strategy=${strategy}`, `docker.host=unix://${socket}`],
    });
  return [
    { name: 'docker shared', server: await start('shared', 2) },
    { name: 'docker fresh', server: await start('fresh', 2) },
  ];
}

function versionCommands(languages: readonly LanguageName[]): Map<string, readonly string[]> {
  const programs = languages.map((language) => [language, [programOf(language) ?? '', '--version']] as const);
  return new Map<string, readonly string[]>([['crun', ['crun', '--version']], ...programs]);
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') {
    process.stdout.write(USAGE);
    return 0;
  }
  await using stack = new AsyncDisposableStack();
  let interrupted = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (interrupted) return;
    interrupted = true;
    note(`${signal}: tidying up`);
    stack
      .disposeAsync()
      .catch((error: unknown) => note(String(error)))
      .finally(() => process.exit(signal === 'SIGINT' ? 130 : 143));
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  try {
    const results = await measure(stack, options);
    progress('');
    process.stdout.write(
      options.json
        ? `${JSON.stringify(toJsonReport(results), undefined, 2)}\n`
        : `${renderReport(results)}\n`,
    );
    return 0;
  } catch (error) {
    // What was under way when everything was stopped fails; the handler above ends the process.
    if (interrupted) return await new Promise<never>(() => {});
    throw error;
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  const wrongUse = error instanceof UsageError;
  note(
    wrongUse
      ? `${error.message}\n\n${USAGE}`
      : `bench: ${error instanceof Error ? error.stack : String(error)}`,
  );
  process.exitCode = wrongUse ? 2 : 1;
}
