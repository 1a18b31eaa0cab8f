import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  encodeCredentials,
  newCredentialFolder,
  toRemoveRequest,
  withCredentials,
  type AgentCredentials,
} from '../environment/credentials.ts';
import { Redactor } from '../environment/redactor.ts';
import type { Secret } from '../environment/secret.ts';
import { workerVariables } from '../environment/variables.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { FleetPaths } from '../names.ts';
import { workerBranch } from '../names.ts';
import type { Claim } from '../run/board.ts';
import type { Place } from './place.ts';
import { toPrompt } from './prompt.ts';
import type { RunOptions, RunResult } from './run-in-cell.ts';

/** Below the worktree, too. */
const SPEC_FILES = ['requirements.md', 'design.md'];

export interface AgentParts {
  readonly paths: FleetPaths;
  readonly config: FleetConfig;
  readonly site: Pick<FleetSite, 'toAgentProgram'>;
  readonly credentials: AgentCredentials;
}

export interface AgentCall extends Claim {
  readonly place: Place;
  readonly worker: number;
  /** The fleet stops, or this worker. */
  readonly signal: AbortSignal;
}

export interface Asked extends Pick<RunOptions, 'signal' | 'timeMs' | 'keptBytes'> {
  readonly place: Place;
  readonly prompt: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly onOutput?: (bytes: Uint8Array) => void;
}

/** How the agent is called, in whatever cell. */
export class AgentRun {
  readonly #parts: AgentParts;

  constructor(parts: AgentParts) {
    this.#parts = parts;
  }

  /** One attempt at a task. */
  async run(call: AgentCall, onOutput: (bytes: Uint8Array) => void): Promise<RunResult> {
    const { paths, config } = this.#parts;
    const { place, worker, task, attempt, state, signal } = call;
    const { feature } = paths;
    const worktree = place.git.workdir;
    const prompt = toPrompt({
      feature,
      task,
      lastError: attempt > 1 ? (state.error ?? undefined) : undefined,
      goesOn: state.status === 'paused',
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
    return this.ask({ place, prompt, variables, signal, timeMs, onOutput });
  }

  /**
   * SECURITY: credentials are the first bytes of the agent's stdin, and its home folder, which may hold some, is removed
   * before anything else runs in the cell.
   */
  async ask({ place, prompt, variables, onOutput, ...options }: Asked): Promise<RunResult> {
    const { agent } = this.#parts.config;
    const folder = newCredentialFolder(place.cell.workdir);
    const words = agent.prompt === 'arg' ? [...agent.args, prompt] : agent.args;
    const { argv, verbatim } = withCredentials(folder, [
      this.#parts.site.toAgentProgram(agent.command),
      ...words,
    ]);
    const task = Buffer.from(agent.prompt === 'stdin' ? prompt : '');
    const redactor = new Redactor(this.#secrets());
    try {
      const result = await place.run(
        { argv, env: {}, verbatim: { argv: verbatim?.argv ?? [], env: { ...variables, ...agent.env } } },
        {
          ...options,
          input: Buffer.concat([encodeCredentials(this.#parts.credentials), task]),
          onOutput: (_stream, bytes) => onOutput?.(redactor.push(bytes)),
        },
      );
      onOutput?.(redactor.flush());
      return { ...result, stdout: redactor.text(result.stdout), stderr: redactor.text(result.stderr) };
    } finally {
      // A cell that is gone has taken the folder along.
      await place.run(toRemoveRequest(folder)).catch(() => {});
    }
  }

  #secrets(): Secret[] {
    const { variables, files } = this.#parts.credentials;
    return [...Object.values(variables), ...files.map(({ content }) => content)];
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
