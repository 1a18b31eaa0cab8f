import { toDurationText } from './duration-text.ts';

/** What an event of the state means to whoever watches; undefined for what is of no interest to them. */
export function describeEvent(
  event: string,
  data: Readonly<Record<string, unknown>>,
  isVerbose: boolean,
): string | undefined {
  const text = (name: string): string => toText(data[name]);
  const list = (name: string): string => (Array.isArray(data[name]) ? data[name].join(', ') : text(name));
  switch (event) {
    case 'level_started':
      return `level ${text('level')} begins`;
    case 'level_merged':
      return `level ${text('level')} is merged: ${text('commit').slice(0, 12)}`;
    case 'level_complete':
      return `level ${text('level')} is complete`;
    case 'task_claimed':
      return `worker ${text('worker_id')} takes ${text('task_id')}${data['attempt'] === 1 ? '' : `, attempt ${text('attempt')}`}`;
    case 'task_complete':
      return `✓ ${text('task_id')} is done, ${data['files'] === 1 ? '1 file' : `${text('files')} files`} changed`;
    case 'task_retry_scheduled':
      return `✗ ${text('task_id')} failed and will be tried again: ${inOneLine(text('error'))}`;
    case 'task_failed':
      return `✗ ${text('task_id')} failed for good: ${inOneLine(text('error'))}`;
    case 'task_blocked':
    case 'escalation':
      return `! ${text('task_id')} needs a person: ${firstLine(text('reason'))}`;
    case 'task_requeued':
      return `${text('task_id')} goes back: ${firstLine(text('reason'))}`;
    case 'worker_checkpoint':
      return `${text('task_id')} is put aside and goes on`;
    case 'worker_crashed':
      return `worker ${text('worker_id')} crashed: ${firstLine(text('error'))}`;
    case 'worker_ready':
    case 'worker_stopped':
      return isVerbose ? `worker ${text('worker_id')} is ${event.slice('worker_'.length)}` : undefined;
    case 'dependencies_started':
      return `dependencies: ${text('command')}${data['unreachable'] === undefined ? '' : `, though network.allow has no ${text('unreachable')}`}`;
    case 'dependencies_failed':
      return `! dependencies not installed: ${text('command')} ${inOneLine(text('problem'))}`;
    case 'agent_version':
      return `! ${text('warning')}`;
    case 'gate_pass':
    case 'gate_fail':
    case 'gate_timeout':
    case 'gate_error':
    case 'gate_skip':
      return describeCheck(event, data);
    case 'merge_conflict':
      return `${text('branch')} does not merge: ${list('files')}`;
    default:
      return isVerbose ? `${event} ${JSON.stringify(data)}` : undefined;
  }
}

const CHECK_ENDS: Readonly<Record<string, readonly [sign: string, words: string]>> = {
  gate_pass: ['✓', 'passed'],
  gate_fail: ['✗', 'did not pass'],
  gate_timeout: ['✗', 'was ended after its time'],
  gate_error: ['✗', 'could not be run'],
  gate_skip: ['-', 'was skipped'],
};

/** With the time that it took, if it ran. */
function describeCheck(event: string, data: Readonly<Record<string, unknown>>): string {
  const [sign, words] = CHECK_ENDS[event] ?? ['', event];
  const { duration_ms: ms, required } = data;
  const took = typeof ms === 'number' && event !== 'gate_skip' ? ` (${toDurationText(ms)})` : '';
  const excuse = event === 'gate_pass' || required !== false ? '' : ', which is not required';
  return `${sign} check ${toText(data['gate'])} ${words}${took}${excuse}`;
}

function firstLine(text: string): string {
  return text.split('\n')[0]?.slice(0, 300) ?? '';
}

/** Of several lines of a program. */
function inOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, 600);
}

function toText(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
