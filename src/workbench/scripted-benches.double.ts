import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { HandClock } from '../core/hand-clock.double.ts';
import { BUILT_IN_LANGUAGES } from '../core/language.ts';
import { SILENT_LOG } from '../core/log.ts';
import type { CodeRequest, CodeResult, Workbench } from './api.ts';
import type { WorkbenchesOptions } from './options.ts';
import { ScriptedSite, type ScriptedExec } from './scripted-site.double.ts';
import { WorkbenchSettings } from './settings.ts';
import { KeptWorkbenches } from './workbenches.ts';

export const request = (code: string, more: Partial<CodeRequest> = {}): CodeRequest => ({
  code,
  language: 'typescript',
  packages: [],
  snippets: [],
  files: [],
  stdin: undefined,
  timeoutMs: undefined,
  ...more,
});
export const run = (bench: Workbench, code: string, more: Partial<CodeRequest> = {}): Promise<CodeResult> =>
  bench.run(request(code, more)).result;

/** For tests: workbenches whose cells the test plays, in a folder of their own. */
export class ScriptedBenches implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'hotcell-workbench-'));
  readonly site = new ScriptedSite();
  readonly clock = new HandClock();
  readonly #opened: KeptWorkbenches[] = [];

  open(settings: object = {}, more: Partial<WorkbenchesOptions> = {}): KeptWorkbenches {
    const { site, folder, clock } = this;
    const opened = new KeptWorkbenches({
      // Whatever a test starts is a run.
      settings: WorkbenchSettings.parse({ warmMs: 0, ...settings }),
      mode: 'container',
      folder: join(folder, 'benches'),
      snippetsFolder: join(folder, 'snippets'),
      languages: BUILT_IN_LANGUAGES,
      values: { TOKEN: 'secret', HTTP_PROXY: 'mine' },
      site: () => Promise.resolve(site.open()),
      imports: {
        scan: (code) =>
          Promise.resolve(
            code.includes('syntax error')
              ? {
                  ok: false,
                  problem: {
                    kind: 'syntax',
                    message: 'Unexpected token',
                    line: 3,
                    column: 4,
                    frame: '3 | ^',
                  },
                }
              : {
                  ok: true,
                  code,
                  warnings: [],
                  eager: [...code.matchAll(/from "([^"/]+)/g)].map(([, name = '']) => name),
                  packages: [...code.matchAll(/from "([^"/]+)/g)].map(([, name = '']) => ({
                    name,
                    range: undefined,
                  })),
                },
          ),
        merge: (names, found) => [...names.map((name) => ({ name, range: undefined })), ...found],
      },
      clock,
      log: SILENT_LOG,
      ...more,
    });
    this.#opened.push(opened);
    return opened;
  }

  /** The command of the run with this number. */
  async nextCode(count = 1): Promise<ScriptedExec> {
    for (;;) {
      const found = this.site.cells.flatMap(({ codes }) => codes)[count - 1];
      if (found !== undefined) return found;
      await nextTurn();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const opened of this.#opened) await opened.close();
    rmSync(this.folder, { recursive: true });
  }
}
