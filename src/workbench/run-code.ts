import { posix } from 'node:path';
import { attend } from '../cells/run-to-end.ts';
import { HotcellError, messageOf, toCancelError, toHotcellError } from '../core/errors.ts';
import type { ExecRequest } from '../core/exec.ts';
import { imageOf, type Language } from '../core/language.ts';
import type { Limits } from '../core/limits.ts';
import type { Turns } from '../core/turns.ts';
import type { CellNetwork } from '../egress/cell-network.ts';
import type { Packages } from '../packages/api.ts';
import type { Denial } from '../wire/permissions.ts';
import { abortable } from '../core/abortable.ts';
import type { CodeRequest, CodeResult, Owner, Snippets } from './api.ts';
import type { BenchCell } from './bench-cell.ts';
import type { BenchCells } from './bench-cells.ts';
import { toBunRequest } from './bun-request.ts';
import type { CodeFiles, CodeFolder } from './code-folder.ts';
import { inPlace, toLanguageRequest } from './code-request.ts';
import { readDenials } from './denials.ts';
import { toEnd, type End } from './describe-end.ts';
import type { LiveRun } from './live-run.ts';
import type { WorkbenchesOptions } from './options.ts';
import { toPermissionKey } from './permission-text.ts';
import type { PermissionTable } from './permission-table.ts';
import { prepareCode, type PreparedCode } from './prepare-code.ts';
import { toRefusedAccess } from './refused-access.ts';
import type { StartedExec } from './waiting-bun.ts';
import type { WarmBun } from './warm-bun.ts';
import { toWarmPlan } from './warm-plan.ts';

/** What runs need of their workbench. */
export interface RunHost {
  readonly owner: Owner;
  readonly options: WorkbenchesOptions;
  readonly permissions: PermissionTable;
  readonly cells: BenchCells;
  readonly warm: WarmBun;
  readonly snippets: Snippets;
  readonly turns: Turns;
  code(): Promise<CodeFolder>;
}

export interface RunOrder {
  readonly request: CodeRequest;
  readonly language: Language;
  readonly limits: Limits;
}

/** What is found out on the way, for the result, whatever comes of the run. */
interface Findings extends Changing<'packages' | 'installed' | 'filesChanged' | 'isolation' | 'cellId'> {
  denials: Denial[];
  warnings: string[];
}
type Changing<Name extends keyof CodeResult> = { -readonly [Each in Name]: CodeResult[Each] };

const ATTEMPTS = 2;
const MOST_FILES = 200;
/** Code that seems to use the network gets a way out that is shut, so that it can be said what it wanted. */
const NETWORK_WORDS = /https?:|wss?:|\bfetch\b|\bWebSocket\b|node:(?:http|net|tls|dns)/;

/** One run, from the request to its result. Never rejects. */
export async function runCode(run: LiveRun, order: RunOrder, host: RunHost): Promise<CodeResult> {
  const findings: Findings = {
    packages: [],
    installed: [],
    filesChanged: [],
    denials: [],
    warnings: [],
    isolation: undefined,
    cellId: undefined,
  };
  const end = await inTurn(run, order, host, findings).catch((error: unknown) => toFailure(run, error));
  return {
    ...end,
    ...run.output(),
    ...findings,
    durationMs: run.durationMs,
    phases: run.phases,
    limits: order.limits,
  };
}

/** Runs of a workbench share the folder with the code, and the files. */
async function inTurn(run: LiveRun, order: RunOrder, host: RunHost, findings: Findings): Promise<End> {
  if (run.signal.aborted) throw toCancelError(run.signal);
  const turn = host.turns.enter(run.signal);
  if (turn !== undefined) await turn;
  try {
    return await toItsEnd(run, order, host, findings);
  } finally {
    host.turns.leave();
  }
}

async function toItsEnd(run: LiveRun, order: RunOrder, host: RunHost, findings: Findings): Promise<End> {
  const { options } = host;
  run.enter('packages', 'reading the code');
  const prepared = await prepareCode(order.request, {
    owner: host.owner,
    language: order.language,
    snippets: host.snippets,
    imports: options.imports,
    packages: () => readyPackages(run, options),
    signal: run.signal,
    onProgress: (text) => run.enter('packages', text),
  });
  findings.warnings.push(...prepared.warnings);
  findings.packages = prepared.packages?.packages ?? [];
  findings.installed = prepared.packages?.fromStore === false ? prepared.packages.packages : [];
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptRun({ run, order, host, prepared, findings });
    } catch (error) {
      // A lost cell has left no trace outside itself, so running again is safe as long as nothing was printed.
      const { code, message } = toHotcellError(error);
      const isLost = code === 'CELL_LOST' || code === 'CELL_START_FAILED';
      if (!isLost || attempt === ATTEMPTS || run.outputBytes > 0 || run.signal.aborted) throw error;
      options.log.warn({ run: run.id, error: message }, 'cell lost');
    }
  }
}

/** Packages are installed in cells, too: with the same image, if cells are made from images. */
async function readyPackages(run: LiveRun, options: WorkbenchesOptions): Promise<Packages> {
  const { images, packages } = await options.site();
  if (images !== undefined) {
    await images.ensure(images.base, (text) => run.enter('image', text));
    run.enter('packages', 'looking for packages');
  }
  return packages;
}

interface Attempt {
  readonly run: LiveRun;
  readonly order: RunOrder;
  readonly host: RunHost;
  readonly prepared: PreparedCode;
  readonly findings: Findings;
}

async function attemptRun(attempt: Attempt): Promise<End> {
  const { run, order, findings } = attempt;
  const { cells } = attempt.host;
  const image = isBun(order.language) ? 'base' : imageOf(order.language);
  const listener = { onPhase: (phase: 'image' | 'cell', text: string) => run.enter(phase, text) };
  const bench = await abortable(cells.get(image, listener), run.signal);
  findings.isolation = bench.cell.isolation;
  findings.cellId = bench.cell.id;
  if (cells.takeReplacement(bench))
    findings.warnings.push('the cell of this session was lost and replaced; its files are gone');
  try {
    return await runIn(bench, attempt);
  } catch (error) {
    if (toHotcellError(error).code === 'CELL_LOST') cells.discard(bench);
    throw error;
  }
}

export function isBun({ command }: Language): boolean {
  return command[0] === 'bun';
}

function eachOnce(denials: readonly Denial[]): Denial[] {
  return [...new Map(denials.map((denial) => [toPermissionKey(denial.permission), denial])).values()];
}

async function runIn(bench: BenchCell, attempt: Attempt): Promise<End> {
  const { run, order, host, findings } = attempt;
  const { request, limits } = order;
  run.enter('running', 'running');
  if (request.files.length > 0) {
    await abortable(bench.write(request.files), run.signal);
    await host.warm.discard();
  }
  const network = await openNetwork(bench, request.code, host);
  const mark = network?.mark() ?? 0;
  const { command, saysDenials } = await toCommand(bench, network, attempt);
  const { exec, events } = await start(bench, command, attempt);
  if (request.stdin !== undefined && request.stdin !== '') exec.write(Buffer.from(request.stdin));
  exec.closeStdin();
  const attention = {
    timeMs: limits.wallTimeMs,
    outputBytes: limits.outputBytes,
    signal: run.signal,
    onOutput: (stream: 'stdout' | 'stderr', bytes: Uint8Array) => run.take(stream, bytes),
    onUnkillable: () => host.cells.discard(bench),
  };
  const exit = await attend(exec, attention, events);
  const refusals = network?.refusalsSince(mark) ?? [];
  const refused = toRefusedAccess(refusals);
  const said = saysDenials ? readDenials(run.rawStderr()).denials : [];
  findings.denials = eachOnce([...said, ...refused.denials]);
  findings.warnings.push(...refused.warnings);
  await noteChanges(bench, attempt);
  const end = toEnd(exit, limits, findings.denials);
  return end.status === 'cancelled' ? { ...end, message: toCancelError(run.signal).message } : end;
}

/** Where walls are made around commands, Bun has hooks in it that say on stderr what was refused. */
async function toCommand(
  bench: BenchCell,
  network: CellNetwork | undefined,
  { order, host, prepared, findings }: Attempt,
): Promise<{ readonly command: ExecRequest; readonly saysDenials: boolean }> {
  const { permissions: table, options } = host;
  const { permissions, warnings } = table.current();
  findings.warnings.push(...warnings);
  const { driver } = await options.site();
  const { language } = order;
  const cwd = bench.workFolder;
  if (driver.traits.confines === 'commands' && isBun(language)) {
    const values = table.grantableValues();
    return {
      command: inPlace(toBunRequest({ permissions, values, network }), cwd),
      saysDenials: true,
    };
  }
  const variables = network === undefined ? {} : bench.variables;
  const main = prepared.main.name;
  const plan = { permissions, values: table.values(), network, variables, language, main, cwd };
  return { command: toLanguageRequest(plan), saysDenials: false };
}

function toCodeFiles(bench: BenchCell, { main, snippets, packages }: PreparedCode): CodeFiles {
  const modules = packages === undefined ? undefined : posix.join(bench.places.packages, packages.modules);
  return { main, snippets, modules };
}

/** Lets the Bun go on that waits for this command, or starts it. */
async function start(bench: BenchCell, request: ExecRequest, attempt: Attempt): Promise<StartedExec> {
  const { run, order, host, prepared } = attempt;
  const { signal } = run;
  const files = toCodeFiles(bench, prepared);
  const { main, snippets, modules } = files;
  const { eager } = prepared;
  const code = await host.code();
  const lay = (): void => code.lay(files);
  if (isBun(order.language)) {
    const plan = toWarmPlan({ request, main: main.name, snippets: snippets.keys(), modules, eager });
    const waiting = await host.warm.take(bench, plan, { signal, lay });
    if (waiting !== undefined) return waiting;
  } else {
    await host.warm.discard();
    lay();
  }
  if (signal.aborted) throw toCancelError(signal);
  const exec = await bench.cell.exec(request);
  return { exec, events: exec.events };
}

async function openNetwork(
  bench: BenchCell,
  code: string,
  { permissions, options }: RunHost,
): Promise<CellNetwork | undefined> {
  const rules = permissions.httpRules();
  if (rules.length === 0 && !NETWORK_WORDS.test(code)) return undefined;
  try {
    return await bench.network(rules);
  } catch (error) {
    if (rules.length > 0) throw error;
    options.log.warn({ error: messageOf(error) }, 'gate unavailable');
    return undefined;
  }
}

/** The result does not depend on it: files may be too many to look at, and the cell may be gone. */
async function noteChanges(bench: BenchCell, { findings, host }: Attempt): Promise<void> {
  try {
    const changed = await bench.changedFiles();
    findings.filesChanged = changed.slice(0, MOST_FILES);
    const more = changed.length - MOST_FILES;
    if (more > 0) findings.warnings.push(`${more} more files were changed`);
  } catch (error) {
    host.options.log.debug({ error: messageOf(error) }, 'changed files unknown');
    findings.warnings.push(`it cannot be told which files were changed: ${messageOf(error)}`);
  }
}

/** What of ours went wrong, or why it was ended. */
function toFailure(run: LiveRun, error: unknown): End {
  const unknown = { exitCode: undefined, signal: undefined };
  if (run.signal.aborted)
    return { ...unknown, status: 'cancelled', message: toCancelError(run.signal).message, hint: undefined };
  const { code, message, hint } = toHotcellError(error);
  if (code === 'CELL_LOST') {
    return {
      ...unknown,
      status: 'failed',
      message: `the cell was lost while the code ran (${message})`,
      hint: 'Run it again: the next run gets a new cell. Files of this session are gone.',
    };
  }
  return { ...unknown, status: 'failed', message, hint };
}

export function unknownLanguage(name: string, known: readonly string[]): HotcellError {
  return new HotcellError(
    'LANGUAGE_UNKNOWN',
    `there is no language ${JSON.stringify(name.slice(0, 64))}; known: ${known.join(', ')}`,
    { field: 'language', hint: 'runner://capabilities lists the languages of this server.' },
  );
}
