import { describeBegun } from '../agent/check-agent.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { WorkerLog } from '../logs/worker-log.ts';
import type { Board } from '../run/board.ts';
import { addFigures, describeTool, NO_FIGURES, type AgentFigures } from './agent-watch.ts';
import type { AgentEvent } from './claude-events.ts';

/** The state is written durably each time. */
const STATE_EVERY_MS = 2000;
/** A line of the log. */
const FIGURES_EVERY_MS = 15_000;
/** Of one attempt. An agent that says more than that is not read by anybody. */
const MOST_LINES = 5000;
const LONGEST_TEXT = 500;

interface NotesParts {
  readonly site: Pick<FleetSite, 'mode' | 'agentVersions'>;
  readonly config: Pick<FleetConfig, 'agent'>;
  readonly board: Board;
  readonly log: WorkerLog;
  readonly worker: number;
  readonly task: string;
  /** What earlier attempts have cost. */
  readonly spent: AgentFigures | undefined;
}

/** Tells what an agent does while it does it: in the log of its worker, and in the state. */
export class AgentNotes {
  readonly #parts: NotesParts;
  #lines = 0;
  #notedAt = Number.NEGATIVE_INFINITY;
  #figuresAt = Number.NEGATIVE_INFINITY;
  #activity: string | null = null;

  constructor(parts: NotesParts) {
    this.#parts = parts;
  }

  take(event: AgentEvent, figures: AgentFigures): void {
    this.#tell(event);
    if (event.kind === 'tokens') this.#tellFigures(figures);
    if (event.kind === 'tool') this.#activity = describeTool(event);
    if (performance.now() - this.#notedAt < STATE_EVERY_MS) return;
    this.#notedAt = performance.now();
    this.#note(figures);
  }

  /** Undefined: nothing is known of what it cost. */
  end(figures: AgentFigures | undefined): void {
    this.#activity = null;
    if (figures !== undefined) this.#note(figures);
  }

  #note(figures: AgentFigures): void {
    const { board, worker, task, spent = NO_FIGURES } = this.#parts;
    board.noteAgent(worker, task, { figures: addFigures(spent, figures), activity: this.#activity });
  }

  #tellFigures(figures: AgentFigures): void {
    if (performance.now() - this.#figuresAt < FIGURES_EVERY_MS) return;
    this.#figuresAt = performance.now();
    const { log, task, spent = NO_FIGURES } = this.#parts;
    const sum = addFigures(spent, figures);
    log.info('agent working', {
      task_id: task,
      phase: 'execute',
      event: 'agent_figures',
      data: { ...sum },
    });
  }

  #tell(event: AgentEvent): void {
    const { log, task, site, config, board } = this.#parts;
    const fields = { task_id: task, phase: 'execute' } as const;
    if (event.kind === 'begun' && event.version !== undefined) {
      const warning = describeBegun(event.version, { site, agent: config.agent });
      if (warning === undefined || !board.noteOnce('agent_version', { warning })) return;
      log.warn('agent version untried', { ...fields, event: 'agent_version', data: { warning } });
    }
    if (event.kind !== 'tool' && event.kind !== 'text' && event.kind !== 'retry') return;
    if (this.#lines++ >= MOST_LINES) return;
    if (event.kind === 'tool')
      log.info('agent used tool', {
        ...fields,
        event: 'agent_tool',
        data: { tool: event.name, about: event.about },
      });
    else if (event.kind === 'text') {
      const text = event.text.trim().slice(0, LONGEST_TEXT);
      log.info('agent said', { ...fields, event: 'agent_text', data: { text } });
    } else
      log.warn('agent request retried', { ...fields, event: 'agent_retry', data: { reason: event.text } });
  }
}
