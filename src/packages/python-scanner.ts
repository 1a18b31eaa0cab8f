import { createHash } from 'node:crypto';
import * as z from 'zod';
import { FurnishedCell } from '../cells/furnished-cell.ts';
import { readOutcome } from '../cells/read-outcome.ts';
import type { CellImage } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { toCancelError } from '../core/errors.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import type { PackageSpec } from './api.ts';
import { isPythonName } from './pip-spec.ts';
import { quoted } from './package-spec.ts';
import { toDistribution } from './python-distributions.ts';
import { failed, LONGEST_CODE } from './scan-imports.ts';
import type { ImportScan } from './scan-messages.ts';
import { parseJson } from '../lib/parse-json.ts';

export interface PythonScannerOptions {
  readonly driver: Driver;
  /** Has Python in it, for drivers that use images. */
  readonly image?: CellImage;
  readonly limits: Limits;
  readonly log: Log;
}

export interface PythonScanOptions {
  /** Modules that stand beside the code. */
  readonly own: readonly string[];
  readonly signal: AbortSignal;
}

/** SECURITY: it comes out of a cell that has read hostile code. */
const Reply = z.union([
  z.strictObject({
    modules: z.array(z.tuple([z.string(), z.int()])).max(10_000),
    unreadable: z.array(z.int()).max(10),
  }),
  z.strictObject({
    problem: z.strictObject({ message: z.string().max(1000), line: z.int(), column: z.int() }),
  }),
]);
type Reply = z.infer<typeof Reply>;

const LONGEST_REPLY = 1024 * 1024;
const MOST_KEPT = 256;

/** Reads imports of Python code with Python's own parser, in a cell without a network. The same code is read once. */
export class PythonScanner {
  readonly #options: PythonScannerOptions;
  readonly #kept = new Map<string, Reply>();

  constructor(options: PythonScannerOptions) {
    this.#options = options;
  }

  async scan(code: string, { own, signal }: PythonScanOptions): Promise<ImportScan> {
    if (code.length > LONGEST_CODE) {
      return failed('syntax', `the code has more than ${LONGEST_CODE} characters`);
    }
    const digest = createHash('sha256').update(code).digest('hex');
    const reply = this.#kept.get(digest) ?? (await this.#ask(code, signal));
    if (reply === undefined) return failed('syntax', 'the code is too large or too deeply nested to be read');
    this.#keep(digest, reply);
    return toScan(code, reply, own);
  }

  #keep(digest: string, reply: Reply): void {
    this.#kept.delete(digest);
    this.#kept.set(digest, reply);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }

  /** Undefined when Python died of it. */
  async #ask(code: string, signal: AbortSignal): Promise<Reply | undefined> {
    if (signal.aborted) throw toCancelError(signal);
    const { driver, image, limits, log } = this.#options;
    const spec = {
      name: 'imports',
      kind: 'packages',
      limits,
      ...(image === undefined ? {} : { image }),
    } as const;
    await using cell = await FurnishedCell.make({ driver, spec, log });
    const stdout = new CappedBytes(LONGEST_REPLY);
    const { outcome } = await cell.run(
      { argv: ['python3', '-I', '{guest}/python-imports.py'], env: {} },
      { input: Buffer.from(code), timeMs: limits.wallTimeMs, signal, stdout },
    );
    if (signal.aborted) throw toCancelError(signal);
    return readOutcome(outcome).ok ? Reply.safeParse(parseJson(stdout.text())).data : undefined;
  }
}

function toScan(code: string, reply: Reply, own: readonly string[]): ImportScan {
  if ('problem' in reply) {
    const { message, line, column } = reply.problem;
    return {
      ok: false,
      problem: { kind: 'syntax', message, line, column, frame: toFrame(code, line, column) },
    };
  }
  const packages = new Map<string, PackageSpec>();
  for (const [module, line] of reply.modules) {
    if (own.includes(module)) continue;
    const name = toDistribution(module);
    if (!isPythonName(name)) {
      const frame = toFrame(code, line, 1);
      return {
        ok: false,
        problem: {
          kind: 'import',
          message: `${quoted(module)} is no name of a package`,
          line,
          column: 1,
          frame,
        },
      };
    }
    packages.set(name, { name, range: undefined });
  }
  const warnings = reply.unreadable.map(
    (line) =>
      `line ${line}: what is imported here is only known when the code runs; packages must be asked for by name`,
  );
  return { ok: true, packages: [...packages.values()], eager: [], code, warnings };
}

function toFrame(code: string, line: number, column: number): string {
  const text = (code.split('\n', line)[line - 1] ?? '').slice(0, 100).replaceAll(/\p{Cc}/gu, ' ');
  const margin = `${line} | `;
  return `${margin}${text}\n${' '.repeat(margin.length + Math.min(Math.max(column - 1, 0), 100))}^`;
}
