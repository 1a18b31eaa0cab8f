import type { TaskArtifacts } from '../logs/task-artifacts.ts';
import type { WorkerLog } from '../logs/worker-log.ts';

const REFUSALS_NOTED = 20;
const REFUSALS_SAID = 5;
/** Where agents sign in. No cell needs that: it is done on the host. */
const LOGIN_HOSTS = /^(?:platform\.claude\.com|console\.anthropic\.com|claude\.(?:ai|com))[:\s]/;

/** That the agent wanted to sign in, and where. */
export function findLoginRefusal(refused: readonly string[]): string | undefined {
  return refused.find((one) => LOGIN_HOSTS.test(one));
}

/** For the words of a failure; undefined: nothing was refused. */
export function describeRefusals(refused: readonly string[]): string | undefined {
  const shown = [...new Set(refused)].slice(0, REFUSALS_SAID).join('; ');
  return shown === '' ? undefined : `The network refused ${shown}`;
}

interface Noted {
  readonly task: { readonly id: string };
  readonly artifacts: TaskArtifacts;
  readonly log: WorkerLog;
}

/** What the programs of the task wanted of the network and did not get: people have to see it to allow it, or to wonder. */
export function noteRefusals({ task, artifacts, log }: Noted, refused: readonly string[]): void {
  if (refused.length === 0) return;
  const shown = [...new Set(refused)].slice(0, REFUSALS_NOTED);
  artifacts.record(
    log.warn('connections refused', {
      task_id: task.id,
      phase: 'execute',
      event: 'egress_refused',
      data: { count: refused.length, refused: shown },
    }),
  );
}
