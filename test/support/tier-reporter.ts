import { relative } from 'node:path';
import type { Reporter, TestModule, Vitest } from 'vitest/node';

const SLOWEST = 15;

/** At the end: how long each tier took, and which files most of it. */
export default class TierReporter implements Reporter {
  #vitest: Vitest | undefined;
  readonly #begun = new Map<string, number>();
  readonly #files: { project: string; file: string; from: number; to: number }[] = [];

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestModuleStart(module: TestModule): void {
    this.#begun.set(idOf(module), performance.now());
  }

  onTestModuleEnd(module: TestModule): void {
    const to = performance.now();
    const file = relative(this.#vitest?.config.root ?? '', module.moduleId);
    this.#files.push({ project: module.project.name, file, from: this.#begun.get(idOf(module)) ?? to, to });
  }

  onTestRunEnd(): void {
    if (this.#files.length < 2) return;
    const tiers = Map.groupBy(this.#files, ({ project }) => project.split('-')[0] ?? '');
    const lines = [...tiers].map(([tier, files]) => {
      const from = Math.min(...files.map((file) => file.from));
      const to = Math.max(...files.map((file) => file.to));
      return `${toTime(to - from)}  tier ${tier}, ${files.length} files`;
    });
    const slowest = this.#files.toSorted((a, b) => b.to - b.from - (a.to - a.from)).slice(0, SLOWEST);
    lines.push('', 'The slowest files');
    for (const { project, file, from, to } of slowest)
      lines.push(`${toTime(to - from)}  ${file} (${project})`);
    this.#vitest?.logger.log(`\n${lines.join('\n')}\n`);
  }
}

function idOf({ project, moduleId }: TestModule): string {
  return `${project.name} ${moduleId}`;
}

function toTime(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${String(Math.floor(seconds / 60)).padStart(4)}:${String(seconds % 60).padStart(2, '0')}`;
}
