import type { Task } from '../task-graph.ts';
import { HOW_TO_END } from './agent-words.ts';

/** About two thousand tokens of what was written down about the feature. */
const SPEC_CHARACTERS = 8000;
const ERROR_CHARACTERS = 4000;

export interface PromptParts {
  readonly feature: string;
  readonly task: Task;
  /** Requirements and design, as far as there are any. */
  readonly specs: readonly { readonly name: string; readonly text: string }[];
  /** Why the last attempt did not do. */
  readonly lastError: string | undefined;
  /** There are commits of an earlier attempt that was put aside. */
  readonly goesOn: boolean;
  /** What an earlier attempt said in place of being done. */
  readonly said?: string | undefined;
  /** What a person has said to that. */
  readonly answer?: string | undefined;
}

/** What the agent is asked to do. Pure text: no variable, no path of the host and no secret has a place in it. */
export function toPrompt({ feature, task, specs, lastError, goesOn, said, answer }: PromptParts): string {
  const parts = [
    `# Task ${task.id}: ${task.title}`,
    `You are one of several workers on the feature "${feature}". Do this task and no other.`,
    task.description,
    listFiles('Create these files', task.files.create),
    listFiles('Change these files', task.files.modify),
    listFiles('Read these files first', task.files.read),
    'Change no other files: they belong to other workers.',
    toCriteria(task.acceptance_criteria),
    task.context === undefined ? '' : `## Context\n${task.context}`,
    task.verification === undefined
      ? ''
      : `## Verification\nAfterwards this command is run and must exit with 0:\n\n    ${task.verification.command}`,
    goesOn ? 'An earlier attempt was put aside; its commits are on this branch. Go on from there.' : '',
    lastError === undefined
      ? ''
      : `## The last attempt failed\n${lastError.slice(-ERROR_CHARACTERS)}\n\nMend that.`,
    said === undefined ? '' : `## What you said last\n${said.slice(-ERROR_CHARACTERS)}`,
    answer === undefined ? '' : `## What a person answers\n${answer}`,
    ...specs.map(({ name, text }) => `## ${name}\n${shorten(text, SPEC_CHARACTERS / specs.length)}`),
    HOW_TO_END,
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function listFiles(title: string, files: readonly string[]): string {
  return files.length === 0 ? '' : `${title}:\n${files.map((file) => `- ${file}`).join('\n')}`;
}

function toCriteria(criteria: Task['acceptance_criteria']): string {
  if (criteria === undefined) return '';
  const list = typeof criteria === 'string' ? criteria : criteria.map((line) => `- ${line}`).join('\n');
  return `## Acceptance criteria\n${list}`;
}

function shorten(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}\n[… ${text.length - limit} more characters]`;
}
