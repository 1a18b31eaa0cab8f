import * as z from 'zod';
import { TaskGraph } from '../task-graph.ts';

/** How long a task should take a worker. */
export interface TaskMinutes {
  readonly least: number;
  readonly most: number;
}

export interface DesignQuestion {
  readonly feature: string;
  readonly requirements: string;
  /** Of the repository, by their paths. */
  readonly files: readonly string[];
  readonly minutes: TaskMinutes;
}

const MOST_FILES = 2000;
const MOST_FILE_CHARACTERS = 60_000;
const MOST_ANSWER_CHARACTERS = 60_000;

export function toDesignPrompt({ feature, requirements, files, minutes }: DesignQuestion): string {
  return `Cut the work on the feature "${feature}" of the repository in the current folder into tasks for several workers, who do
them at the same time and cannot talk to each other. Look at the repository first. Change no file: your answer is a
task graph in JSON.

Rules:
- Tasks have levels from 1 on. All tasks of a level are done at the same time; what they made is merged, and then the next
  level starts from that. A task may depend only on tasks of lower levels.
- A file that a task creates or changes belongs to that task alone, in the whole graph. A file that several tasks would
  have to change goes to one task of a higher level that puts things together.
- A task takes a worker ${minutes.least} to ${minutes.most} minutes ("estimate_minutes").
- The description says all that a worker needs who sees only this task and the repository.
- Every task has a "verification" with a shell command that exits with 0 when the task is done, run at the top of the
  repository within "timeout_seconds" (at most 600).
- Ids begin with a letter and have letters, digits, - and _: ${prefixOf(feature)}-L1-001.
- Paths are relative to the top of the repository.

Answer with one JSON object and nothing else: "feature" is ${JSON.stringify(feature)}, and all of it obeys this schema:

${JSON.stringify(z.toJSONSchema(TaskGraph, { io: 'input' }))}

# Requirements

${requirements.trim()}

# Files of the repository

${listFiles(files)}
`;
}

/** Asks again, with everything that was wrong. The agent remembers nothing. */
export function toMendPrompt(first: string, answer: string, problems: readonly string[]): string {
  return `${first}
# Your last answer

It was refused. These are all of its problems; answer with the whole graph again, without them:

${problems.map((problem) => `- ${problem}`).join('\n')}

This was the answer:

${answer.slice(0, MOST_ANSWER_CHARACTERS)}
`;
}

function prefixOf(feature: string): string {
  const word = /[A-Za-z][A-Za-z0-9]*/.exec(feature)?.[0] ?? 'TASK';
  return word.toUpperCase().slice(0, 12);
}

function listFiles(files: readonly string[]): string {
  const shown: string[] = [];
  let room = MOST_FILE_CHARACTERS;
  for (const file of files.slice(0, MOST_FILES)) {
    room -= file.length + 1;
    if (room < 0) break;
    shown.push(file);
  }
  const left = files.length - shown.length;
  return [...shown, ...(left > 0 ? [`[… and ${left} more]`] : [])].join('\n');
}
