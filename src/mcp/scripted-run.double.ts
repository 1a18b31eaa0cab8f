import { DEFAULT_LIMITS } from '../core/limits.ts';
import type { InstalledPackage } from '../core/installed-package.ts';
import type { Denial, Permission } from '../wire/permissions.ts';
import type { CodeRequest, CodeResult, CodeRun, RunOutput, RunPhase, RunProgress } from '../workbench/api.ts';

const ENDS = ['timeout', 'memory', 'cancelled', 'failed'] as const;

export interface ScriptedPlace {
  readonly files: Map<string, Uint8Array>;
  allows(permission: Permission): boolean;
}

/**
 * A run that does what its code says, one line at a time, in words of its own: `print TEXT`, `warn TEXT` (stderr),
 * `flood BYTES`, `exit CODE`, `hang`, `end STATUS`, `fetch HOST`, `file PATH BASE64`, `install NAME`, `read`.
 * Other lines do nothing.
 */
export class ScriptedRun implements CodeRun {
  readonly id: string;
  readonly request: CodeRequest;
  readonly language: string;
  readonly startedAt = Date.now();
  phase: RunPhase = 'waiting';
  cancelled = 0;
  readonly result: Promise<CodeResult>;
  readonly #listeners = new Set<(progress: RunProgress) => void>();
  readonly #text = { stdout: '', stderr: '' };
  readonly #denials: Denial[] = [];
  readonly #installed: InstalledPackage[] = [];
  readonly #changed: { readonly path: string; readonly sizeBytes: number }[] = [];
  readonly #end = Promise.withResolvers<CodeResult>();
  readonly #place: ScriptedPlace;
  #exitCode = 0;

  constructor(id: string, request: CodeRequest, place: ScriptedPlace) {
    this.id = id;
    this.request = request;
    this.#place = place;
    this.language = request.language;
    this.result = this.#end.promise;
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  start(): void {
    for (const { path, content } of this.request.files) this.#place.files.set(path, content);
    this.enter('packages', 'reading the imports');
    this.enter('running', 'running');
    for (const line of this.request.code.split('\n')) {
      const [word = '', ...rest] = line.trim().split(' ');
      if (this.#obey(word, rest) === 'stop') return;
    }
    this.end(this.#exitCode === 0 ? 'ok' : 'error');
  }

  enter(phase: RunPhase, message: string): void {
    this.phase = phase;
    for (const listener of this.#listeners) listener({ phase, message });
  }

  print(stream: 'stdout' | 'stderr', text: string): void {
    this.#text[stream] += text;
    for (const listener of this.#listeners) listener({ phase: this.phase, message: text });
  }

  end(status: CodeResult['status'], changes: Partial<CodeResult> = {}): void {
    this.enter('ended', status);
    const ran = status === 'ok' || status === 'error';
    this.#end.resolve({
      ...this.output(),
      status,
      exitCode: ran ? this.#exitCode : undefined,
      signal: ran ? undefined : 'SIGKILL',
      message: ran ? undefined : `it ended as ${status}`,
      hint: undefined,
      denials: this.#denials,
      packages: this.#installed,
      installed: this.#installed,
      filesChanged: this.#changed,
      durationMs: 12,
      phases: { packages: 2, running: 10 },
      limits: DEFAULT_LIMITS,
      isolation: undefined,
      cellId: 'cell_1',
      warnings: [],
      ...changes,
    });
  }

  output(): RunOutput {
    const { stdout, stderr } = this.#text;
    return {
      stdout,
      stderr,
      stdoutBytes: Buffer.byteLength(stdout),
      stderrBytes: Buffer.byteLength(stderr),
      stdoutCut: 0,
      stderrCut: 0,
    };
  }

  watch(listener: (progress: RunProgress) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  cancel(): Promise<void> {
    this.cancelled += 1;
    if (this.phase !== 'ended') this.end('cancelled');
    return Promise.resolve();
  }

  #obey(word: string, rest: readonly string[]): 'stop' | undefined {
    const text = rest.join(' ');
    if (word === 'hang') return 'stop';
    if (word === 'end') {
      this.end(ENDS.find((status) => status === text) ?? 'failed');
      return 'stop';
    }
    if (word === 'fetch') return this.#reach(text);
    if (word === 'print') this.print('stdout', `${text}\n`);
    if (word === 'warn') this.print('stderr', `${text}\n`);
    if (word === 'flood') this.print('stdout', 'é'.repeat(Number(text) / 2));
    if (word === 'read') this.print('stdout', this.request.stdin ?? '');
    if (word === 'exit') this.#exitCode = Number(text);
    if (word === 'install')
      this.#installed.push({ name: text, version: '1.0.0', from: 'registry.test', direct: true });
    if (word === 'file') this.#write(rest[0] ?? '', Buffer.from(rest[1] ?? '', 'base64'));
    return undefined;
  }

  #write(path: string, content: Uint8Array): void {
    this.#place.files.set(path, content);
    this.#changed.push({ path, sizeBytes: content.length });
  }

  #reach(host: string): 'stop' | undefined {
    const permission: Permission = { type: 'http', host, methods: ['GET'] };
    if (this.#place.allows(permission)) {
      this.print('stdout', `reached ${host}\n`);
      return undefined;
    }
    this.#denials.push({ action: `GET https://${host}/`, permission });
    this.end('denied', { message: `it may not reach ${host}` });
    return 'stop';
  }
}
