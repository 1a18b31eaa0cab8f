import { parseArgs } from 'node:util';
import { openDocker, type OpenDocker } from '../docker/open-docker.ts';
import { renderTable } from '../report/markdown-table.ts';
import { HotcellServer } from '../server/hotcell-server.ts';
import { ForeignLoad } from '../support/foreign-load.ts';
import { describeMachine } from '../support/machine.ts';
import { note, progress } from '../support/progress.ts';
import { makeScratch } from '../support/scratch.ts';
import { stopAllServices } from '../support/services.ts';
import { measureCreation } from './creation.ts';
import { measureExec } from './exec.ts';
import { measureFlood } from './flood.ts';
import { measureSync } from './sync.ts';

const USAGE = `Usage: scripts/bench.sh sessions [OPTION…]        (npm run bench -- sessions [OPTION…])

  --rounds N         samples of each way (default: 40)
  --gigabytes N      output of the flood (default: 1)
  --start-docker     start a private dockerd and stop it at the end (needs root)
`;

/** One line of the table of what is required. */
export interface Requirement {
  readonly text: string;
  readonly value: number | undefined;
  readonly holds: (value: number) => boolean;
}

interface Options {
  readonly rounds: number;
  readonly gigabytes: number;
  readonly startDocker: boolean;
}

async function measure(stack: AsyncDisposableStack, options: Options): Promise<string> {
  const scratch = makeScratch(stack);
  stack.defer(stopAllServices);
  const foreign = new ForeignLoad();
  await foreign.pause(2000);
  progress('starting what is compared');
  const docker = await openDocker(stack, { ...DOCKER_OPTIONS, startDocker: options.startDocker });
  const common = { scratch, languages: ['bash'] as const, poolSize: 1 };
  const oci = await HotcellServer.start({ ...common, settings: ['driver=oci'] });
  const onDocker = docker === undefined ? undefined : await startOnDocker(docker, common);
  const parts = [
    await measureExec({ oci, onDocker, docker }, { rounds: options.rounds, foreign }),
    await measureCreation({ oci, onDocker }, options.rounds),
    await measureSync(oci, { scratch, rounds: options.rounds }),
    await measureFlood(oci, options.gigabytes),
  ];
  const requirements = parts.flatMap((part) => part.requirements);
  const machine = await describeMachine();
  return [
    `${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}; ${options.rounds} rounds. ` +
      `Others kept ${foreign.cores.toFixed(2)} cores busy.`,
    '### Required',
    renderTable(['requirement', 'found', 'verdict'], requirements.map(toRow)),
    ...parts.flatMap((part) => [`### ${part.title}`, part.table]),
  ].join('\n\n');
}

const DOCKER_OPTIONS = { json: false, languages: [], rounds: 0, seconds: 0, dockerContainer: undefined };

function startOnDocker(
  { engine }: OpenDocker,
  common: { scratch: string; languages: readonly ['bash']; poolSize: number },
): Promise<HotcellServer> {
  const settings = ['driver=docker', 'strategy=shared', `docker.host=unix://${engine.socket}`];
  return HotcellServer.start({ ...common, settings });
}

function toRow({ text, value, holds }: Requirement): string[] {
  if (value === undefined) return [text, '–', 'not measured'];
  return [text, value.toFixed(2), holds(value) ? 'ok' : 'MISSED'];
}

function readOptions(args: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h' },
      rounds: { type: 'string', default: '40' },
      gigabytes: { type: 'string', default: '1' },
      'start-docker': { type: 'boolean', default: false },
    },
  });
  if (values.help === true) return undefined;
  return {
    rounds: Number(values.rounds),
    gigabytes: Number(values.gigabytes),
    startDocker: values['start-docker'],
  };
}

const options = readOptions(process.argv.slice(2));
if (options === undefined) process.stdout.write(USAGE);
else {
  await using stack = new AsyncDisposableStack();
  try {
    const report = await measure(stack, options);
    progress('');
    process.stdout.write(`${report}\n`);
  } catch (error) {
    note(`bench: ${error instanceof Error ? error.stack : String(error)}`);
    process.exitCode = 1;
  }
}
