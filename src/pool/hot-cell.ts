import { randomBytes, randomUUID } from 'node:crypto';
import type { Cell } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import type { Exec, ExecEvent, ExecOutcome, Usage } from '../core/exec.ts';
import { toHotCommand, type Language } from '../core/language.ts';
import type { Limits } from '../core/limits.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { READY_BYTE } from './job-frame.ts';

/** A cell whose interpreter has booted and waits for one job. */
export interface HotCell {
  readonly cell: Cell;
  readonly main: Exec;
  /** Where the code will stand in the cell. */
  readonly filePath: string;
  /** What booting has used, to be taken off the bill of the job. */
  readonly bootUsage: Usage;
}

/** Names repeat after a while; what identifies a cell is its id. */
export function toCellName(language: string): string {
  return `code-runner-${language}-${randomBytes(2).toString('hex')}`;
}

/** Makes a cell and waits until its interpreter says that it is ready. */
export async function bootHotCell(
  driver: Driver,
  language: { readonly name: string; readonly entry: Language },
  limits: Limits,
): Promise<HotCell> {
  const fileName = `exec_${randomUUID()}.${language.entry.extension}`;
  const file = `{workdir}/${fileName}`;
  const cell = await driver.create({
    name: toCellName(language.name),
    kind: 'run',
    limits,
    main: toHotCommand(language.entry, file),
    touch: file,
  });
  if (cell.main === undefined) throw new HotcellError('INTERNAL', 'the driver started no main program');
  try {
    await waitUntilReady(cell.main.events, language);
  } catch (error) {
    await cell.dispose();
    throw error;
  }
  return {
    cell,
    main: cell.main,
    filePath: `${cell.workdir}/${fileName}`,
    bootUsage: await cell.usage(),
  };
}

async function waitUntilReady(
  events: AsyncIterable<ExecEvent>,
  language: { readonly name: string; readonly entry: Language },
): Promise<void> {
  const words = new CappedBytes(2048);
  for await (const event of events) {
    if (event.type === 'stdout' && event.bytes.length === 1 && event.bytes[0] === READY_BYTE) return;
    if (event.type === 'exit') throw toBootError(event.outcome, words.text().trim(), language);
    words.push(event.bytes);
  }
}

const NOT_FOUND = 127;

function toBootError(
  outcome: ExecOutcome,
  words: string,
  language: { readonly name: string; readonly entry: Language },
): HotcellError {
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
  const fate = outcome.kind === 'exited' ? `exit ${outcome.code}` : outcome.kind;
  return new HotcellError(
    'CELL_START_FAILED',
    `${language.name}: ${program} did not start (${fate}): ${words}`,
  );
}
