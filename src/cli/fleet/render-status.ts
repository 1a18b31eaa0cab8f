import type { StatusView } from '../../fleet/status/status-view.ts';
import type { Terminal } from '../terminal.ts';
import {
  renderAttention,
  renderCommits,
  renderHead,
  renderLevels,
  renderTasks,
  renderWorkers,
} from './status-sections.ts';

/** What of it is wanted; with none of them, what somebody who just asks wants to see. */
export interface StatusSections {
  readonly tasks?: boolean;
  readonly workers?: boolean;
  readonly commits?: boolean;
  readonly level?: number | undefined;
}

export function renderStatus(view: StatusView, sections: StatusSections, paint: Terminal['paint']): string[] {
  const {
    level,
    tasks: hasTasks = false,
    workers: hasWorkers = false,
    commits: hasCommits = false,
  } = sections;
  const isIn = (task: { readonly level: number | undefined }): boolean =>
    level === undefined || task.level === level;
  const tasks = view.tasks.filter(isIn);
  const isPlain = !hasTasks && !hasWorkers && !hasCommits;
  const parts = [
    renderHead(view, paint),
    isPlain ? renderLevels(view.levels.filter(isIn), paint) : [],
    isPlain || hasWorkers ? renderWorkers(view.workers, paint) : [],
    hasTasks || (isPlain && level !== undefined) ? renderTasks(tasks, paint) : [],
    hasCommits ? renderCommits(tasks) : [],
    renderAttention(view.attention, paint),
  ];
  return parts
    .filter((lines) => lines.length > 0)
    .flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}
