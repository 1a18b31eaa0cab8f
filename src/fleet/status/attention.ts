import { cutMiddle } from '../../lib/cut-text.ts';
import type { FleetState, LevelState, WorkerState } from '../fleet-state.ts';
import type { TaskView } from './status-view.ts';

const LONGEST_REASON = 300;
const ESCALATION = 4;

/** Something that waits for a person, and what to do about it. */
export interface AttentionLine {
  readonly kind:
    | 'error'
    | 'conflict'
    | 'gate'
    | 'failed'
    | 'blocked'
    | 'escalated'
    | 'dependencies'
    | 'worker'
    | 'stopped';
  readonly text: string;
  readonly instructions: readonly string[];
}

/** SECURITY: texts hold what cells said. They are printed by `toPrintable` only. */
export function toAttention(seen: {
  readonly state: FleetState;
  readonly tasks: readonly TaskView[];
  readonly isAlive: boolean;
}): AttentionLine[] {
  const { state, tasks, isAlive } = seen;
  return [
    ...toRunLines(state),
    ...Object.entries(state.levels).flatMap(([level, known]) => toLevelLine(level, known)),
    ...tasks.flatMap((task) => toTaskLine(task, state)),
    ...toSetupLines(state),
    ...Object.values(state.workers).flatMap(toWorkerLine),
    ...(isAlive ? [] : toStoppedLine(state, tasks)),
  ];
}

function toRunLines({ error }: FleetState): AttentionLine[] {
  return error ? [{ kind: 'error', text: shorten(error), instructions: [] }] : [];
}

function toLevelLine(level: string, known: LevelState): AttentionLine[] {
  const { status, merge_status: merge, merge_details: details } = known;
  const instructions = details?.instructions ?? [];
  if (status === 'conflict' || merge === 'conflict') {
    const files = details?.files?.length ? `: ${details.files.join(', ')}` : '';
    const text = `level ${level}: ${details?.branch ?? 'a branch'} does not merge${files}`;
    return [{ kind: 'conflict', text, instructions }];
  }
  if (status !== 'failed') return [];
  const what = details?.gate === undefined ? 'it failed' : `the check ${details.gate} did not pass`;
  return [{ kind: 'gate', text: `level ${level}: ${what}`, instructions }];
}

/** Work goes on without them, but may fail for it. */
function toSetupLines({ setup_problems: problems = {}, finished_at: finished }: FleetState): AttentionLine[] {
  if (finished) return [];
  return Object.entries(problems).map(([command, problem]) => ({
    kind: 'dependencies',
    text: `dependencies not installed: ${command} ${shorten(problem)}`,
    instructions: [
      'See network.allow, and worktree.setup_command or setup: none, in .mahabharatha/config.yaml',
    ],
  }));
}

function toWorkerLine({ worker_id: worker, status, error }: WorkerState): AttentionLine[] {
  return status === 'crashed' || status === 'stalled'
    ? [{ kind: 'worker', text: `worker ${worker} ${status}${reason(error)}`, instructions: [] }]
    : [];
}

function toTaskLine({ id, status, error }: TaskView, { feature, tasks }: FleetState): AttentionLine[] {
  const retry = `hotcell fleet retry ${id} --feature ${feature}`;
  const look = `hotcell fleet logs --feature ${feature} --task ${id} --artifacts`;
  if (status === 'failed')
    return [{ kind: 'failed', text: `${id} failed${reason(error)}`, instructions: [look, retry] }];
  if (status !== 'blocked') return [];
  return tasks[id]?.exit_code === ESCALATION
    ? [
        {
          kind: 'escalated',
          text: `${id} asks for a decision${reason(error)}`,
          instructions: [look, `${retry} --answer '…'`],
        },
      ]
    : [{ kind: 'blocked', text: `${id} is blocked${reason(error)}`, instructions: [look, retry] }];
}

/** Nobody is at it, though something could be done. */
function toStoppedLine(state: FleetState, tasks: readonly TaskView[]): AttentionLine[] {
  const isOpen = tasks.some(({ status }) => !['complete', 'failed', 'blocked'].includes(status));
  const isUnmerged = Object.values(state.levels).some(({ status }) => status !== 'complete');
  if (!isOpen && !isUnmerged) return [];
  return [
    {
      kind: 'stopped',
      text: 'no orchestrator is running',
      instructions: [`hotcell fleet resume --feature ${state.feature}`],
    },
  ];
}

function reason(error: string | null | undefined): string {
  return error ? `: ${shorten(error)}` : '';
}

function shorten(text: string): string {
  return cutMiddle(text.trim().replaceAll(/\s+/g, ' '), LONGEST_REASON, () => ' […] ').text;
}
