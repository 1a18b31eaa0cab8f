import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import { GRAPH_FILE, type ReadGraph } from '../graph/read-graph.ts';
import { checkGraph, graphError, toProblemText, type GraphCheck } from '../graph/validate-graph.ts';
import { fleetPaths } from '../names.ts';
import type { TaskGraph } from '../task-graph.ts';
import { askFor, type AskAgent } from './ask-agent.ts';
import { toDesignPrompt, toMendPrompt, type DesignQuestion, type TaskMinutes } from './design-prompt.ts';
import { findJson } from './find-json.ts';
import { replaceFile } from './keep-file.ts';
import { requireApproved } from './plan-feature.ts';

const MOST_ROUNDS = 3;
const MOST_ANSWER = 4 * 1024 ** 2;
/** Of one answer; the agent gets all of them. */
const PROBLEMS_TOLD = 5;
const REJECTED = 'task-graph.rejected.json';

export interface Designing extends Omit<DesignQuestion, 'requirements'> {
  readonly root: string;
  readonly ask: AskAgent;
  readonly force: boolean;
  readonly onProgress: (text: string) => void;
  /** What is wrong with an answer. SECURITY: it holds words of the agent. */
  readonly onProblem: (text: string) => void;
}

export interface DesignedFeature extends ReadGraph {
  /** How often the agent was asked. */
  readonly rounds: number;
}

/** Cuts approved requirements into tasks. An agent that gets it wrong is told everything that is, and may try again. */
export async function designFeature(designing: Designing): Promise<DesignedFeature> {
  const { root, feature, ask, onProgress, onProblem } = designing;
  const requirements = await requireApproved(root, feature);
  const { specs } = fleetPaths(root, feature);
  const path = join(specs, GRAPH_FILE);
  requireFree(designing, path);
  const rejected = join(specs, REJECTED);
  const first = toDesignPrompt({ ...designing, requirements });
  let prompt = first;
  for (let round = 1; ; round++) {
    onProgress(round === 1 ? 'asking the agent for a task graph' : `asking the agent again, round ${round}`);
    const answer = (await askFor(ask, prompt)).slice(0, MOST_ANSWER);
    const { graph, problems, warnings } = judge(answer, designing);
    if (graph !== undefined) {
      await replaceFile(root, path, `${JSON.stringify(graph, undefined, 2)}\n`);
      await rm(rejected, { force: true });
      return { path, graph, warnings, rounds: round };
    }
    await replaceFile(root, rejected, answer);
    onProgress(`the answer has ${problems.length === 1 ? '1 problem' : `${problems.length} problems`}`);
    if (round === MOST_ROUNDS) {
      const where = relative(root, rejected);
      throw graphError(
        `the agent made no valid graph in ${round} rounds; its last answer is in ${where}, and ${toProblemText(problems)}`,
      );
    }
    for (const problem of problems.slice(0, PROBLEMS_TOLD)) onProblem(problem);
    if (problems.length > PROBLEMS_TOLD) onProblem(`and ${problems.length - PROBLEMS_TOLD} more`);
    prompt = toMendPrompt(first, answer, problems);
  }
}

function judge(answer: string, { feature, minutes }: Designing): GraphCheck {
  const content = findJson(answer);
  if (content === undefined)
    return { graph: undefined, problems: ['the answer has no JSON object'], warnings: [] };
  const named = typeof content === 'object' && content !== null ? { ...content, feature } : content;
  const { graph, problems, warnings } = checkGraph(named, feature);
  const tooLong = graph === undefined ? [] : findTooLong(graph, minutes);
  const all = [...problems, ...tooLong];
  const odd = graph === undefined ? [] : findOddTasks(graph, minutes);
  return { graph: all.length === 0 ? graph : undefined, problems: all, warnings: [...warnings, ...odd] };
}

function findTooLong(graph: TaskGraph, { most }: TaskMinutes): string[] {
  return graph.tasks.flatMap(({ id, estimate_minutes: minutes = 0 }, index) =>
    minutes > most
      ? [`tasks[${index}] (${id}).estimate_minutes: ${minutes} is more than ${most}; split the task`]
      : [],
  );
}

/** What a person may want to look at: small tasks, and work that nothing checks. */
export function findOddTasks(graph: TaskGraph, { least, most }: TaskMinutes): string[] {
  return graph.tasks.flatMap(({ id, estimate_minutes: minutes, verification }, index) => {
    const place = `tasks[${index}] (${id})`;
    return [
      ...(minutes !== undefined && minutes < least
        ? [`${place}.estimate_minutes: ${minutes} is less than ${least}`]
        : []),
      ...(minutes !== undefined && minutes > most
        ? [`${place}.estimate_minutes: ${minutes} is more than ${most}`]
        : []),
      ...(verification === undefined ? [`${place}.verification: there is none, so nothing is checked`] : []),
    ];
  });
}

function requireFree({ root, feature, force }: Designing, path: string): void {
  if (force) return;
  const { state } = fleetPaths(root, feature);
  if (existsSync(state)) {
    throw new HotcellError('INVALID_REQUEST', `workers have begun with the task graph of ${feature}`, {
      hint: `Clear that away first (hotcell fleet cleanup --feature ${feature}), or use --force and go on with the new graph.`,
    });
  }
  if (existsSync(path)) {
    throw new HotcellError('INVALID_REQUEST', `${relative(root, path)} is there already`, {
      hint: 'Check it (hotcell fleet design --validate-only), or have it made anew: --force',
    });
  }
}
