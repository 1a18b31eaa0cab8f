import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requireLogin, USUAL_NEED_MS } from '../environment/agent-login.ts';
import type { CollectedCredentials } from '../environment/collect-credentials.ts';
import {
  encodeCredentials,
  newCredentialFolder,
  toRemoveRequest,
  withCredentials,
} from '../environment/credentials.ts';
import { workerVariables } from '../environment/variables.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { FleetPaths } from '../names.ts';
import { workerBranch } from '../names.ts';
import type { Claim } from '../run/board.ts';
import { planAgentCall } from './agent-call.ts';
import { AgentEars } from './agent-ears.ts';
import type { AgentFigures, AgentListener } from './agent-watch.ts';
import type { AgentProblem } from './claude-events.ts';
import type { Place } from './place.ts';
import { toPrompt } from './prompt.ts';
import type { RunOptions, RunResult } from './run-in-cell.ts';

/** Below the worktree, too. */
const SPEC_FILES = ['requirements.md', 'design.md'];

export interface AgentParts {
  readonly paths: FleetPaths;
  readonly config: FleetConfig;
  readonly site: Pick<FleetSite, 'toAgentProgram'>;
  /** Asked before each call. Throws AGENT_SIGNED_OUT. */
  readonly readCredentials: () => Promise<CollectedCredentials>;
}

export interface AgentCall extends Claim {
  readonly place: Place;
  readonly worker: number;
  /** The fleet stops, or this worker. */
  readonly signal: AbortSignal;
}

/** How a call ended. */
export interface AgentEnd extends RunResult {
  /** All that the agent answered. */
  readonly answer: string;
  /** The end of it, with what its program complained of. */
  readonly words: string;
  readonly problem: AgentProblem | undefined;
  /** Undefined of an agent that prints text. */
  readonly figures: AgentFigures | undefined;
}

export interface Asked extends Pick<RunOptions, 'signal' | 'timeMs' | 'keptBytes'> {
  /** How long it will take, as somebody thinks. */
  readonly estimateMs?: number | undefined;
  readonly place: Place;
  readonly prompt: string;
  readonly variables: Readonly<Record<string, string>>;
  /** What the task has cost in earlier attempts. */
  readonly spent?: AgentFigures | undefined;
  readonly listener: AgentListener;
}

/** How the agent is called, in whatever cell. */
export class AgentRun {
  readonly #parts: AgentParts;

  constructor(parts: AgentParts) {
    this.#parts = parts;
  }

  /** One attempt at a task. */
  async run(call: AgentCall, listener: AgentListener): Promise<AgentEnd> {
    const { paths, config } = this.#parts;
    const { place, worker, task, attempt, state, signal } = call;
    const { feature } = paths;
    const worktree = place.git.workdir;
    const prompt = toPrompt({
      feature,
      task,
      lastError: attempt > 1 ? (state.error ?? undefined) : undefined,
      goesOn: state.wip?.worker_id === worker,
      said: state.said ?? undefined,
      answer: state.answer ?? undefined,
      specs: await this.#readSpecs(),
    });
    const variables = workerVariables({
      worker,
      feature,
      branch: workerBranch(feature, worker),
      worktree,
      specDir: join(worktree, '.gsd/specs', feature),
      taskId: task.id,
      attempt,
      port: portOf(config, worker),
    });
    const timeMs = config.workers.timeout_minutes * 60_000;
    const { estimate_minutes: minutes } = task;
    const estimateMs = minutes === undefined ? undefined : minutes * 60_000;
    return this.ask({ place, prompt, variables, signal, timeMs, estimateMs, spent: state.agent, listener });
  }

  /**
   * SECURITY: credentials are the first bytes of the agent's stdin, and its home folder, which may hold some, is removed
   * before anything else runs in the cell.
   */
  async ask({ place, prompt, variables, estimateMs, spent, listener, ...options }: Asked): Promise<AgentEnd> {
    const { agent } = this.#parts.config;
    const credentials = await this.#parts.readCredentials();
    requireLogin(credentials.expiresAt, Math.min(options.timeMs ?? Infinity, estimateMs ?? USUAL_NEED_MS));
    const folder = newCredentialFolder(place.cell.workdir);
    const { args, speaks } = planAgentCall(agent, prompt, spent);
    const program = this.#parts.site.toAgentProgram(agent.command);
    const { argv, verbatim } = withCredentials(folder, [program, ...args]);
    const task = Buffer.from(agent.prompt === 'stdin' ? prompt : '');
    const ears = new AgentEars(speaks, listener);
    place.secrets.add(credentials.secrets);
    try {
      const result = await place.run(
        { argv, env: {}, verbatim: { argv: verbatim?.argv ?? [], env: { ...variables, ...agent.env } } },
        {
          ...options,
          input: Buffer.concat([encodeCredentials(credentials), task]),
          onOutput: (stream, bytes) => ears.hear(stream, bytes),
        },
      );
      return ears.end(result);
    } finally {
      // A cell that is gone has taken the folder along.
      await place.run(toRemoveRequest(folder)).catch(() => {});
    }
  }

  /** What was written down about the feature, as it is now on the host. */
  async #readSpecs(): Promise<{ name: string; text: string }[]> {
    const texts = await Promise.all(
      SPEC_FILES.map((name) => readFile(join(this.#parts.paths.specs, name), 'utf8').catch(() => '')),
    );
    return SPEC_FILES.map((name, index) => ({ name, text: texts[index] ?? '' })).filter(
      ({ text }) => text !== '',
    );
  }
}

/** A port for servers that a worker starts. In a cell all ports are its own; without walls each has another one. */
export function portOf({ ports }: Pick<FleetConfig, 'ports'>, worker: number): number {
  return Math.min(ports.range_end, ports.range_start + worker);
}
