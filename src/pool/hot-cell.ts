import { randomBytes, randomUUID } from 'node:crypto';
import type { Cell, CellFolder } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import type { Exec, ExecOutcome, ExecRequest, Usage } from '../core/exec.ts';
import { imageOf, toCommand, toHotCommand, type Language } from '../core/language.ts';
import type { Limits } from '../core/limits.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { READY_BYTE } from './job-frame.ts';

/** An interpreter that has booted in a cell and waits for one job. */
export interface HotCell {
  readonly cell: Cell;
  readonly main: Exec;
  /** Where the code will stand in the cell. */
  readonly filePath: string;
  /** What booting has used, to be taken off the bill of the job. */
  readonly bootUsage: Usage;
  /** Ends the interpreter, and with it the cell if that was made for it. May be called twice. */
  dispose(): Promise<void>;
  /** Something is wrong with the cell: nobody else shall be sent there. */
  retire(): void;
  /** Others have made the cell unfit, so whoever still waits in it shall not be used. */
  readonly spoiled: boolean;
}

export interface NamedLanguage {
  readonly name: string;
  readonly entry: Language;
}

/** Names repeat after a while; what identifies a cell is its id. */
export function toCellName(language: string): string {
  return `code-runner-${language}-${randomBytes(2).toString('hex')}`;
}

/** Does an interpreter boot and wait for the job? Else only its walls do. */
export function bootsFirst({ hot }: Language): boolean {
  return hot !== undefined && hot.boots;
}

/** The command that runs a job whose file is laid down behind walls that wait, and the file. */
export function planLate(entry: Language): { readonly command: ExecRequest; readonly fileName: string } {
  const fileName = toFileName(entry);
  const file = `{workdir}/${fileName}`;
  return { command: { argv: toCommand(entry, file), env: {}, touch: file }, fileName };
}

/** The command that waits for a job, and the code file that it is started on. */
export function planBoot(entry: Language): { readonly command: ExecRequest; readonly fileName: string } {
  const fileName = toFileName(entry);
  const file = `{workdir}/${fileName}`;
  return { command: { ...toHotCommand(entry, file), touch: file }, fileName };
}

function toFileName({ extension }: Language): string {
  return `exec_${randomUUID()}.${extension}`;
}

/** Makes a cell for one job and waits until its interpreter says that it is ready. */
export async function bootHotCell(
  driver: Driver,
  language: NamedLanguage,
  limits: Limits,
  folders: readonly CellFolder[] = [],
): Promise<HotCell> {
  const { command, fileName } = planBoot(language.entry);
  const cell = await driver.create({
    name: toCellName(language.name),
    kind: 'run',
    limits,
    image: imageOf(language.entry),
    main: command,
    ...(folders.length === 0 ? {} : { folders }),
  });
  const { main } = cell;
  if (main === undefined) throw new HotcellError('INTERNAL', 'the driver started no main program');
  try {
    await waitUntilReady(main, language);
  } catch (error) {
    await cell.dispose();
    throw error;
  }
  return {
    cell,
    main,
    filePath: `${cell.workdir}/${fileName}`,
    bootUsage: await main.usage(),
    dispose: () => cell.dispose(),
    retire: () => {},
    spoiled: false,
  };
}

/** An interpreter that does not get ready, because it was stopped by a neighbour perhaps, must not hold anybody. */
const LONGEST_BOOT_MS = 30_000;

export async function waitUntilReady(main: Exec, language: NamedLanguage): Promise<void> {
  const words = new CappedBytes(2048);
  const timer = setTimeout(() => void main.kill('wallTimeMs').catch(() => {}), LONGEST_BOOT_MS);
  try {
    for await (const event of main.events) {
      if (event.type === 'stdout' && event.bytes.length === 1 && event.bytes[0] === READY_BYTE) return;
      if (event.type === 'exit') throw toBootError(event.outcome, words.text().trim(), language);
      words.push(event.bytes);
    }
  } finally {
    clearTimeout(timer);
  }
}

const NOT_FOUND = 127;

function toBootError(outcome: ExecOutcome, words: string, language: NamedLanguage): HotcellError {
  const program = language.entry.command[0] ?? '';
  if (outcome.kind === 'exited' && outcome.code === NOT_FOUND) {
    const { package: debianPackage } = language.entry;
    const hint = debianPackage === undefined ? {} : { hint: `apt-get install -y ${debianPackage}` };
    return new HotcellError(
      'LANGUAGE_UNAVAILABLE',
      `${language.name}: there is no ${program} in the cell (${words})`,
      hint,
    );
  }
  if (outcome.kind === 'limit' && outcome.limit === 'memoryBytes') {
    return new HotcellError('LIMIT_TOO_LOW', `memory_mb: too little for ${program} to start`, {
      field: 'memory_mb',
    });
  }
  const fate = outcome.kind === 'exited' ? `exit ${outcome.code}` : outcome.kind;
  return new HotcellError(
    'CELL_START_FAILED',
    `${language.name}: ${program} did not start (${fate}): ${words}`,
  );
}
