import { cpus } from 'node:os';
import { relative } from 'node:path';
import type { Reporter, TestModule, Vitest } from 'vitest/node';

const SLOWEST = 15;

interface Moment {
  readonly at: number;
  /** What the processors have worked and rested since the machine was started. */
  readonly busy: number;
  readonly idle: number;
}

/** At the end: how long each tier took, how busy the machine was, and which files took most of it. */
export default class TierReporter implements Reporter {
  #vitest: Vitest | undefined;
  readonly #begun = new Map<string, Moment>();
  readonly #files: { project: string; file: string; from: Moment; to: Moment }[] = [];

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestModuleStart(module: TestModule): void {
    this.#begun.set(idOf(module), now());
  }

  onTestModuleEnd(module: TestModule): void {
    const to = now();
    const file = relative(this.#vitest?.config.root ?? '', module.moduleId);
    this.#files.push({ project: module.project.name, file, from: this.#begun.get(idOf(module)) ?? to, to });
  }

  onTestRunEnd(): void {
    if (this.#files.length < 2) return;
    const tiers = Map.groupBy(this.#files, ({ project }) => project.split('-')[0] ?? '');
    const lines = [...tiers].map(([tier, files]) => {
      const from = files.map((file) => file.from).reduce((a, b) => (b.at < a.at ? b : a));
      const to = files.map((file) => file.to).reduce((a, b) => (b.at > a.at ? b : a));
      return `${toTime(to.at - from.at)}  tier ${tier}, ${files.length} files, processors ${toShare(from, to)} busy`;
    });
    const slowest = this.#files.toSorted((a, b) => b.to.at - b.from.at - (a.to.at - a.from.at));
    lines.push('', 'The slowest files');
    for (const { project, file, from, to } of slowest.slice(0, SLOWEST))
      lines.push(`${toTime(to.at - from.at)}  ${file} (${project})`);
    this.#vitest?.logger.log(`\n${lines.join('\n')}\n`);
  }
}

function idOf({ project, moduleId }: TestModule): string {
  return `${project.name} ${moduleId}`;
}

function now(): Moment {
  let [busy, idle] = [0, 0];
  for (const { times } of cpus()) {
    busy += times.user + times.nice + times.sys + times.irq;
    idle += times.idle;
  }
  return { at: performance.now(), busy, idle };
}

function toShare(from: Moment, to: Moment): string {
  const busy = to.busy - from.busy;
  return `${Math.round((100 * busy) / Math.max(1, busy + to.idle - from.idle))} %`;
}

function toTime(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${String(Math.floor(seconds / 60)).padStart(4)}:${String(seconds % 60).padStart(2, '0')}`;
}
