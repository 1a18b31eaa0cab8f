import { HotcellError, messageOf } from '../../core/errors.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { TaskArtifacts } from '../logs/task-artifacts.ts';
import type { WorkerLog } from '../logs/worker-log.ts';
import type { Board } from '../run/board.ts';
import type { Committed } from '../run/task-changes.ts';
import { boundReached, describeBound } from './agent-call.ts';
import { AgentNotes } from './agent-notes.ts';
import type { AgentCall, AgentEnd, AgentRun } from './agent-run.ts';
import { NO_FIGURES } from './agent-watch.ts';
import { readVerdict } from './agent-words.ts';
import { toCheckpointMessage, toCommitMessage } from './commit-message.ts';
import { foreignFiles } from './file-ownership.ts';
import { describeRefusals, findLoginRefusal, noteRefusals } from './network-refusals.ts';
import type { RunResult } from './run-in-cell.ts';

/** Of what a verification printed so much goes into the state, and with the words of the agent to the next attempt. */
const WORDS_KEPT = 2800;
/** Of what the agent said before something else failed. */
const AGENT_WORDS_KEPT = 1000;
const DIFF_BYTES = 4 * 1024 * 1024;
const NAMES_KEPT = 20;

/** What came of one attempt at a task. That the cell was lost is an exception. */
export type AttemptResult =
  | ({ readonly kind: 'done' } & Committed)
  | { readonly kind: 'checkpoint'; readonly commit: string; readonly reason: string }
  | { readonly kind: 'blocked'; readonly code: 3 | 4; readonly reason: string }
  | { readonly kind: 'failed'; readonly code: number; readonly error: string }
  /** Nobody can do anything before a person has signed in. */
  | { readonly kind: 'signed-out'; readonly reason: string }
  | { readonly kind: 'over-time'; readonly error: string }
  | { readonly kind: 'stopped' };

export interface Attempt extends AgentCall {
  readonly config: FleetConfig;
  readonly site: FleetSite;
  readonly agent: AgentRun;
  readonly board: Board;
  readonly artifacts: TaskArtifacts;
  readonly log: WorkerLog;
}

/** One attempt. What becomes of the task is certain then, whatever becomes of the place: see `leavePlace`. */
export async function attemptTask(attempt: Attempt): Promise<AttemptResult> {
  const mark = attempt.place.mark();
  try {
    // A failure is often the network's: whoever reads of it is to know, the next attempt, too.
    const result = alsoSaying(await tryTask(attempt), describeRefusals(attempt.place.refusalsSince(mark)));
    return result.kind === 'failed'
      ? { ...result, error: await attempt.place.explainFailure(result.error) }
      : result;
  } finally {
    noteRefusals(attempt, attempt.place.refusalsSince(mark));
  }
}

async function tryTask(attempt: Attempt): Promise<AttemptResult> {
  try {
    return await perform(attempt);
  } catch (error) {
    if (error instanceof HotcellError && error.code === 'AGENT_SIGNED_OUT')
      return { kind: 'signed-out', reason: error.message };
    // Git of the cell fails in many ways when it finds no room.
    await attempt.place.explainFailure('');
    throw error;
  }
}

/** Afterwards the worktree is as the branch has it, so that the next task finds nothing of this one. */
export async function leavePlace(attempt: Attempt, result: AttemptResult): Promise<void> {
  // Its cell goes, and everything with it.
  if (result.kind === 'over-time') return;
  if (result.kind !== 'done' && result.kind !== 'checkpoint') await putAside(attempt);
  await attempt.place.tidy();
}

const REFUSALS: ReadonlySet<HotcellError['code']> = new Set(['FILE_REFUSED', 'FILE_TOO_LARGE', 'FLEET_GIT']);

/** What the attempt has changed is kept, and then gone from the worktree. A cell that is lost has nothing to put aside. */
export async function putAside({ place, task, artifacts, log }: Attempt): Promise<void> {
  const left = await place.git.settle(place.runGit);
  if (left.patch !== undefined) artifacts.writeInterrupted(place.secrets.redactor().mask(left.patch));
  if (left.ref !== undefined)
    log.info('commits kept', {
      task_id: task.id,
      phase: 'cleanup',
      event: 'commits_kept',
      data: { ref: left.ref },
    });
}

/** Agent, verification, commit. */
async function perform(attempt: Attempt): Promise<AttemptResult> {
  const { task, state, config, log, artifacts } = attempt;
  const execute = { task_id: task.id, phase: 'execute' } as const;
  const bound = boundReached(config.agent, state.agent ?? NO_FIGURES);
  if (bound !== undefined) return { kind: 'blocked', code: 3, reason: bound };
  artifacts.record(
    log.info('agent started', { ...execute, event: 'agent_started', data: { title: task.title } }),
  );
  const started = performance.now();
  const mark = attempt.place.mark();
  const agent = await callAgent(attempt);
  // Of the agent itself: what the verification wants of such a host is its own affair.
  const login = findLoginRefusal(attempt.place.refusalsSince(mark));
  artifacts.record(
    log.info('agent ended', {
      ...execute,
      event: 'agent_ended',
      duration_ms: Math.round(performance.now() - started),
      data: { exit_code: agent.code, ...agent.figures },
    }),
  );
  const end = readEnd(agent, config, login);
  if (end !== 'checkpoint' && end !== 'done') return end;
  const result = await judge(() =>
    end === 'checkpoint' ? checkpoint(attempt, agent.words) : verifyAndCommit(attempt),
  );
  return alsoSaying(result, toAgentWords(agent));
}

/** What a cell has in its worktree, and offers as commits, may be anything: that is the agent's failure and not ours. */
async function judge(act: () => Promise<AttemptResult>): Promise<AttemptResult> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof HotcellError) || !REFUSALS.has(error.code)) throw error;
    return { kind: 'failed', code: 1, error: error.message };
  }
}

async function verifyAndCommit(attempt: Attempt): Promise<AttemptResult> {
  attempt.board.verifying(attempt.task.id);
  return (await verify(attempt)) ?? commit(attempt);
}

function alsoSaying(result: AttemptResult, words: string | undefined): AttemptResult {
  if (!('error' in result) || words === undefined) return result;
  return { ...result, error: `${result.error}\n${words}` };
}

function toAgentWords({ words }: AgentEnd): string | undefined {
  return words === '' ? undefined : `The agent's last words: ${words.slice(-AGENT_WORDS_KEPT)}`;
}

async function callAgent(attempt: Attempt): Promise<AgentEnd> {
  const { state, task } = attempt;
  const notes = new AgentNotes({ ...attempt, task: task.id, spent: state.agent });
  const agent = await withOutput(attempt, 'agent', (onOutput) =>
    attempt.agent.run(attempt, { onOutput, onEvent: (event, figures) => notes.take(event, figures) }),
  );
  notes.end(agent.figures);
  return agent;
}

/** What the end of the agent makes of the task: by its exit code, or by its last line. */
function readEnd(
  agent: AgentEnd,
  config: Pick<FleetConfig, 'agent' | 'workers'>,
  login: string | undefined,
): AttemptResult | 'done' | 'checkpoint' {
  const { reason, code, answer, words, problem } = agent;
  if (reason === 'cancelled') return { kind: 'stopped' };
  if (reason === 'timeout') {
    const error = `the agent took longer than ${config.workers.timeout_minutes} minutes`;
    return alsoSaying({ kind: 'over-time', error }, toAgentWords(agent));
  }
  if (problem === 'signed-out')
    return { kind: 'signed-out', reason: `the agent could not sign in: ${words}` };
  if (problem === 'cost' || problem === 'turns')
    return { kind: 'blocked', code: 3, reason: describeBound(config.agent, problem) };
  const verdict = code === 0 ? readVerdict(answer) : undefined;
  if (code === 2 || verdict?.kind === 'continue') return 'checkpoint';
  if (code === 3 || code === 4) return { kind: 'blocked', code, reason: words };
  if (verdict?.kind === 'blocked') return { kind: 'blocked', code: 3, reason: verdict.reason };
  if (verdict?.kind === 'ask') return { kind: 'blocked', code: 4, reason: verdict.reason };
  // One that says that it is done has found another way, or was only looking.
  if (login !== undefined && verdict?.kind !== 'done') {
    const error = `the agent wanted to sign in, which no cell may (${login}): ${words}`;
    return code === 0 ? { kind: 'failed', code: 1, error } : { kind: 'signed-out', reason: error };
  }
  return code === 0 ? 'done' : { kind: 'failed', code: 1, error: `the agent ${howItEnded(agent)}: ${words}` };
}

async function withOutput<Result>(
  { artifacts, attempt }: Attempt,
  artifact: 'agent' | 'verification',
  run: (onOutput: (bytes: Uint8Array) => void) => Promise<Result>,
): Promise<Result> {
  const output = artifacts.openOutput(artifact, `attempt ${attempt}, ${new Date().toISOString()}`);
  try {
    return await run((bytes) => output.write(bytes));
  } finally {
    output.close();
  }
}

async function verify(attempt: Attempt): Promise<AttemptResult | undefined> {
  const { place, task, signal, log, artifacts } = attempt;
  if (task.verification === undefined) return undefined;
  const { command, timeout_seconds: seconds } = task.verification;
  const result = await withOutput(attempt, 'verification', (onOutput) =>
    place.run(
      { argv: ['bash', '-c'], env: {}, verbatim: { argv: [command], env: {} } },
      { timeMs: seconds * 1000, signal, onOutput: (_stream, bytes) => onOutput(bytes) },
    ),
  );
  if (result.reason === 'cancelled') return { kind: 'stopped' };
  const passed = result.code === 0;
  artifacts.record(
    log.info('verification ended', {
      task_id: task.id,
      phase: 'verify',
      event: passed ? 'verification_passed' : 'verification_failed',
      data: { passed, exit_code: result.code },
    }),
  );
  if (passed) return undefined;
  const how = result.reason === 'timeout' ? `took longer than ${seconds} s` : `ended with ${result.code}`;
  return { kind: 'failed', code: 1, error: `the verification ${how}: ${lastWords(result)}` };
}

async function commit(attempt: Attempt): Promise<AttemptResult> {
  const { place, task, config, artifacts, log } = attempt;
  const fields = { task_id: task.id, phase: 'commit' } as const;
  const { git } = place;
  const from = await git.head();
  // A task that owns files and changed none did nothing, whatever its verification says.
  const allowEmpty = task.files.create.length + task.files.modify.length === 0;
  const { moved } = await git.commit(place.runGit, toCommitMessage(task), { allowEmpty });
  if (!moved) return { kind: 'failed', code: 1, error: 'the agent changed nothing' };
  let done: Committed = { commit: from, files: [], foreign: [] };
  await git.takeCommits(place.runGit, ({ commit: to, files }) => {
    const foreign = config.ownership === 'off' ? [] : foreignFiles(task, files);
    if (foreign.length > 0 && config.ownership === 'enforce')
      throw new HotcellError(
        'FILE_REFUSED',
        `the task does not own ${foreign.slice(0, NAMES_KEPT).join(', ')}`,
      );
    done = { commit: to, files, foreign };
    // The branch is about to get it.
    attempt.board.willTake(task.id, done);
  });
  // The branch has it: nothing from here on can make the task fail.
  artifacts.record(
    log.info('task committed', {
      ...fields,
      event: 'task_committed',
      data: { commit: done.commit, files: done.files.length },
    }),
  );
  if (done.foreign.length > 0)
    log.warn('foreign files changed', {
      ...fields,
      event: 'foreign_files',
      data: { files: done.foreign.slice(0, NAMES_KEPT) },
    });
  try {
    const diff = await git.diff(from, done.commit, DIFF_BYTES);
    artifacts.writeDiff(place.secrets.redactor().mask(diff));
  } catch (error) {
    log.warn('diff not kept', { ...fields, data: { error: messageOf(error) } });
  }
  return { kind: 'done', ...done };
}

/** The agent wants to be called again: what there is so far is kept, and must be more than there was. */
async function checkpoint({ place, task, board }: Attempt, reason: string): Promise<AttemptResult> {
  const { moved } = await place.git.commit(place.runGit, toCheckpointMessage(task), {
    allowEmpty: false,
  });
  if (!moved)
    return { kind: 'failed', code: 2, error: 'the agent asked to be called again, and had done nothing' };
  const { commit: to } = await place.git.takeCommits(place.runGit, ({ commit: taken, files }) =>
    board.willTake(task.id, { commit: taken, files, foreign: [] }, reason),
  );
  return { kind: 'checkpoint', commit: to, reason };
}

function howItEnded({ reason, code }: RunResult): string {
  return reason === 'memory' ? 'was killed: out of memory' : `ended with ${code}`;
}

function lastWords({ stdout, stderr }: Pick<RunResult, 'stdout' | 'stderr'>): string {
  return `${stdout.slice(-WORDS_KEPT)}\n${stderr.slice(-WORDS_KEPT)}`.trim().slice(-WORDS_KEPT);
}
