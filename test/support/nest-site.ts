import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import type { Cell } from '../../src/core/cell.ts';
import type { Nest, NestedRun, NestSpec } from '../../src/core/driver.ts';
import type { ExecEvent, ExecRequest } from '../../src/core/exec.ts';
import { BUILT_IN_LANGUAGES, type Language } from '../../src/core/language.ts';
import { DEFAULT_LIMITS, type Limits } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { OciDriver } from '../../src/drivers/oci/driver.ts';
import { planBoot, planLate } from '../../src/pool/hot-cell.ts';
import { encodeJobFrame, READY_BYTE } from '../../src/pool/job-frame.ts';
import { toProgram, type Program } from '../../guest/exactness/corpus/program.ts';
import { tmpdirOnTmpfs } from './server.ts';

/** A word of bun's command that its bootstrap takes back. */
const NOT_SHOWN = '--no-install';

type ExitEvent = Extract<ExecEvent, { type: 'exit' }>;

/** What became of one run. */
export interface Ran {
  readonly id: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly outcome: ExitEvent['outcome'];
  readonly usage: ExitEvent['usage'];
}

/** Cells with slots of the oci driver, as the pool has them, with nobody between. */
export class NestSite implements AsyncDisposable {
  readonly stateDirectory = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-nest-'));
  readonly driver: OciDriver;

  constructor() {
    this.driver = new OciDriver({
      runtime: 'auto',
      stateDirectory: this.stateDirectory,
      rootfs: undefined,
      guest: fileURLToPath(new URL('../../guest', import.meta.url)),
      tools: bundledTools(),
      weaker: [],
      log: SILENT_LOG,
    });
  }

  async open(
    language: string,
    { slots = 1, limits = {} }: { slots?: number; limits?: Partial<Limits> } = {},
  ) {
    const entry = BUILT_IN_LANGUAGES[language];
    if (entry === undefined) throw new Error(`no language ${language}`);
    const forker = entry.hot?.forks === true ? planBoot(entry) : undefined;
    const spec: NestSpec = {
      name: `nest-${language}`,
      slots,
      limits: { ...DEFAULT_LIMITS, cpus: 2, ...limits },
      ...(forker === undefined ? {} : { forker: forker.command }),
    };
    return new OpenNest(await this.driver.openNest(spec), entry, forker?.fileName);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.driver.close();
    rmSync(this.stateDirectory, { recursive: true, force: true });
  }
}

/** A cell with slots of one language. */
export class OpenNest {
  readonly nest: Nest;
  readonly #entry: Language;
  readonly #fileName: string | undefined;

  constructor(nest: Nest, entry: Language, fileName: string | undefined) {
    this.nest = nest;
    this.#entry = entry;
    this.#fileName = fileName;
  }

  /** As the pool has it made: a copy of an interpreter, or one that boots by itself. */
  async hot(slot = 0): Promise<Cell> {
    if (this.#fileName !== undefined) return this.begin(slot, { mode: 'fork' });
    return this.begin(slot, { mode: 'hot', command: this.#renamed(planBoot(this.#entry)) });
  }

  /** The language's own command, started on the file as if nothing had waited for it. */
  async bare(slot = 0): Promise<Cell> {
    const command = this.#renamed(planLate(this.#entry));
    const [program, ...rest] = command.argv;
    const words = rest.filter((word) => word !== NOT_SHOWN);
    return this.begin(slot, { mode: 'late', command: { ...command, argv: [program, ...words] } });
  }

  /** Programs say the name of their file. */
  #renamed({ command, fileName }: ReturnType<typeof planLate>): ExecRequest {
    const name = this.#fileName ?? `exec_test.${this.#entry.extension}`;
    const rename = (word: string): string => word.replaceAll(fileName, name);
    const [program, ...rest] = command.argv;
    return { ...command, argv: [program, ...rest.map(rename)], touch: rename(command.touch ?? '') };
  }

  begin(slot: number, run: Omit<NestedRun, 'name'>): Promise<Cell> {
    return this.nest.begin(slot, { name: 'code-runner-test', ...run });
  }

  async run(program: string | Program, slot = 0): Promise<Ran> {
    return finish(await this.hot(slot), toProgram(program));
  }
}

/** Gives the job to what waits, and stays to the end. */
export async function finish(cell: Cell, program: Program): Promise<Ran> {
  const { main } = cell;
  if (main === undefined) throw new Error('a run without a program');
  const said = { stdout: '', stderr: '' };
  let isReady = false;
  for await (const event of main.events) {
    if (event.type === 'exit') return { id: cell.id, ...said, outcome: event.outcome, usage: event.usage };
    if (!isReady && event.type === 'stdout' && event.bytes.length === 1 && event.bytes[0] === READY_BYTE) {
      isReady = true;
      main.write(frameOf(program));
      main.closeStdin();
      continue;
    }
    said[event.type] += Buffer.from(event.bytes).toString('latin1');
  }
  throw new Error('the events ended without an exit');
}

function frameOf({ code, args = [], env = {}, files = {}, stdin = '' }: Program): Uint8Array {
  const frame = encodeJobFrame({
    code,
    args: [...args],
    env: { ...env },
    files: Object.entries(files).map(([path, content]) => ({ path, content: Buffer.from(content) })),
  });
  return Buffer.concat([frame, Buffer.from(stdin)]);
}
