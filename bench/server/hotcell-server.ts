import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { LANGUAGES, type LanguageName } from '../support/hello.ts';
import { note } from '../support/progress.ts';
import { startService, stopService } from '../support/services.ts';
import { HttpClient } from './http-client.ts';

export const LAUNCHER = fileURLToPath(new URL('../../hotcell', import.meta.url));
const FULL_WITHIN_MS = 120_000;

export interface ServerOptions {
  readonly scratch: string;
  readonly languages: readonly LanguageName[];
  readonly poolSize: number;
  /** Further settings, as `--set` takes them. */
  readonly settings?: readonly string[];
}

/** A real server in a process of its own, started by the launcher as a person would start it. */
export class HotcellServer implements AsyncDisposable {
  readonly client: HttpClient;
  readonly readyMs: number;
  readonly pid: number;
  readonly #process: ChildProcess;
  readonly #options: ServerOptions;

  private constructor(child: ChildProcess, parts: { url: string; readyMs: number; options: ServerOptions }) {
    this.#process = child;
    this.pid = child.pid ?? 0;
    this.client = new HttpClient(parts.url);
    this.readyMs = parts.readyMs;
    this.#options = parts.options;
  }

  static async start(options: ServerOptions): Promise<HotcellServer> {
    const folder = mkdtempSync(join(options.scratch, 'server-'));
    chmodSync(folder, 0o711);
    const others = LANGUAGES.filter((language) => !options.languages.includes(language));
    const settings = [
      `pool.size=${options.poolSize}`,
      `languages=${JSON.stringify(Object.fromEntries(others.map((language) => [language, false])))}`,
      ...(options.settings ?? []),
    ];
    const args = [
      'up',
      '--port',
      '0',
      '--log-level',
      'warn',
      ...settings.flatMap((setting) => ['--set', setting]),
    ];
    const startedAt = performance.now();
    const child = startService([LAUNCHER, ...args], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: process.env['HOME'] ?? '/tmp',
        HOTCELL_STATE_DIR: join(folder, 'state'),
        HOTCELL_SESSIONS_DIR: join(folder, 'data'),
        // What a session may write is reserved for it; in memory that takes longer than on a disk.
        HOTCELL_SESSIONS_LIMITS_DISK_BYTES: '32m',
        HOTCELL_SESSIONS_RATE_LIMIT_PER_MINUTE: '0',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    try {
      const url = await untilReady(child);
      return new HotcellServer(child, { url, readyMs: performance.now() - startedAt, options });
    } catch (error) {
      await stopService(child);
      throw error;
    }
  }

  /** Waits until every language has all its cells ready; nothing boots or is torn down then. */
  async full(): Promise<void> {
    const { languages, poolSize } = this.#options;
    const deadline = performance.now() + FULL_WITHIN_MS;
    for (;;) {
      const ready = await this.#ready();
      if (languages.every((language) => ready.get(language) === poolSize)) return;
      if (performance.now() > deadline)
        throw new Error(`the pool did not fill: ${JSON.stringify([...ready])}`);
      await sleep(4);
    }
  }

  async #ready(): Promise<Map<string, number>> {
    const { text } = await this.client.get('/metrics');
    const lines = text.matchAll(/^hotcell_cells_ready\{language="([^"]+)"\} (\d+)/gm);
    return new Map([...lines].map(([, language = '', cells]) => [language, Number(cells)]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close();
    await stopService(this.#process);
  }
}

function untilReady(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    const listen = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-4096);
      const url = /ready on (http:\/\/\S+)/.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    };
    child.stdout?.on('data', listen);
    child.stderr?.on('data', listen);
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      const words = `a server ended with ${signal ?? code}: ${output}`;
      // Nobody waits for this once it has been ready; what was asked of it fails on its own.
      if (!child.killed) note(words);
      reject(new Error(words));
    });
  });
}
