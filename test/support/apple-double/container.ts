/**
 * A double of Apple's `container` command: node container.ts FOLDER WORDS…
 * It reads its words as the real one does, answers in the same texts, forms and exit codes, and refuses what that would
 * refuse. Its containers are real ones of a runtime of this machine. FOLDER is all that it remembers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, servicesDown } from './cli-error.ts';
import { buildImage, deleteImages, inspectImages, listImages, pullCommand } from './image-commands.ts';
import {
  deleteContainers,
  inspectContainers,
  killContainers,
  listContainers,
  showLogs,
  showStats,
  stopContainers,
} from './life-commands.ts';
import { parseArguments, type ParsedCall } from './parse-arguments.ts';
import { validateRun } from './plan-container.ts';
import { execInContainer, runContainer, startContainer } from './run-commands.ts';
import { DoubleState, type Fault } from './state.ts';
import { printVersion, showStatus, showSystemVersion, startSystem, stopSystem } from './system-commands.ts';

type Command = (state: DoubleState, call: ParsedCall) => number | Promise<number>;

interface Entry {
  readonly act: Command;
  /** What it says it failed to do when the services are down; undefined for those who look at them first. */
  readonly doing?: string;
  readonly withoutServices?: boolean;
}

const ENTRIES: Readonly<Record<string, Entry>> = {
  run: { act: runContainer },
  create: { act: runContainer },
  exec: { act: execInContainer, doing: 'list containers' },
  start: { act: startContainer, doing: 'list containers' },
  stop: { act: stopContainers, doing: 'stop container' },
  kill: { act: killContainers, doing: 'kill container' },
  delete: { act: deleteContainers, doing: 'delete container' },
  list: { act: listContainers, doing: 'list containers' },
  inspect: { act: inspectContainers, doing: 'list containers' },
  logs: { act: showLogs, doing: 'list containers' },
  stats: { act: showStats, doing: 'list containers' },
  build: { act: buildImage },
  'image list': { act: listImages },
  'image inspect': { act: inspectImages },
  'image pull': { act: pullCommand },
  'image delete': { act: deleteImages },
  'system start': { act: startSystem, withoutServices: true },
  'system status': { act: showStatus, withoutServices: true },
  'system stop': { act: stopSystem, withoutServices: true },
  'system version': { act: showSystemVersion, withoutServices: true },
};

const FORCED_EXIT = 3;
const SIGNAL_NUMBERS = { SIGTERM: 15, SIGINT: 2 } as const;

/** From 1.0 on nothing reaches the process in the container; the third time the call itself ends. */
function forwardSignals(): void {
  let count = 0;
  for (const [name, number] of Object.entries(SIGNAL_NUMBERS)) {
    process.on(name, () => {
      count++;
      process.stderr.write(
        `failed to send signal: ["error": invalidArgument: "missing signal in xpc message", "signal": ${number}]\n`,
      );
      if (count < FORCED_EXIT) return;
      process.stderr.write("Received 3 SIGINT/SIGTERM's, forcefully exiting.\n");
      process.exit(1);
    });
  }
}

async function suffer(fault: Fault | undefined): Promise<void> {
  if (fault === undefined) return;
  if (fault.delayMs !== undefined) await sleep(fault.delayMs);
  if (fault.hang === true) await sleep(2 ** 31 - 1);
  if (fault.exitCode !== undefined) throw new CliError(fault.exitCode, fault.stderr ?? '');
}

async function main(folder: string, argv: readonly string[]): Promise<number> {
  const state = new DoubleState(folder);
  state.noteCall(argv);
  const { services, version } = state.control;
  const call = parseArguments(argv, version, services === 'running');
  if ('shown' in call) {
    if (call.shown === 'version') {
      await suffer(state.takeFault('--version'));
      printVersion(state);
    } else process.stdout.write('OVERVIEW: A container platform for macOS\n');
    return 0;
  }
  const entry = ENTRIES[call.command];
  if (entry === undefined) throw new Error(`nothing does ${call.command}`);
  if (call.command === 'run' || call.command === 'create') validateRun(call.command, call.options);
  if (call.command === 'run' || call.command === 'exec') forwardSignals();
  const fault = state.takeFault(call.command);
  await suffer(fault);
  if (services !== 'running' && entry.withoutServices !== true) throw servicesDown(entry.doing);
  const code = await entry.act(state, call);
  if (fault?.hangAfter === true) await sleep(2 ** 31 - 1);
  return code;
}

const [folder = '', ...argv] = process.argv.slice(2);
process.stdout.on('error', () => process.exit(141));
process.stderr.on('error', () => {});
main(folder, argv).then(
  (code) => leave(code),
  (error: unknown) => {
    if (!(error instanceof CliError)) throw error;
    process.stderr.write(error.text, () => leave(error.exitCode));
  },
);

/** Not before everything is written. */
function leave(code: number): void {
  process.stdout.write('', () => process.exit(code));
}
