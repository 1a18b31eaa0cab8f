import * as z from 'zod';

const TASK_ID = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const LONGEST_VERIFICATION_SECONDS = 600;

/** A path below the repository, as tasks name files. */
const OwnedPath = z
  .string()
  .min(1)
  .max(1024)
  .refine(isInside, 'must be a path below the repository, without .., and not within .git');

function isInside(path: string): boolean {
  const parts = path.split('/');
  return (
    !path.startsWith('/') &&
    !path.includes('\0') &&
    parts.every((part) => part !== '..' && part.toLowerCase() !== '.git')
  );
}

export const Task = z.looseObject({
  id: z.string().regex(TASK_ID, 'must begin with a letter and have letters, digits, - and _, at most 64'),
  title: z.string().min(1).max(200).describe('one line; the subject of the commit'),
  level: z.int().min(1).max(1000),
  description: z.string().max(100_000).default(''),
  dependencies: z.array(z.string()).default([]),
  files: z
    .looseObject({
      create: z.array(OwnedPath).default([]),
      modify: z.array(OwnedPath).default([]),
      read: z.array(OwnedPath).default([]),
    })
    .prefault({}),
  verification: z
    .looseObject({
      command: z.string().min(1).max(10_000).describe('run by `bash -c` in the worktree, inside the cell'),
      timeout_seconds: z.number().min(1).max(LONGEST_VERIFICATION_SECONDS).default(30),
    })
    .optional(),
  estimate_minutes: z.number().min(0).max(120).optional(),
  critical_path: z.boolean().optional(),
  acceptance_criteria: z.union([z.string(), z.array(z.string())]).optional(),
  context: z.string().optional(),
});
export type Task = z.infer<typeof Task>;

const Level = z.looseObject({
  name: z.string().optional(),
  tasks: z.array(z.string()).default([]),
  parallel: z.boolean().optional(),
  estimated_minutes: z.number().optional(),
  depends_on_levels: z.array(z.int()).optional(),
});

/** A task graph as it stands in a file. More keys than these are kept and not looked at. */
export const TaskGraph = z.looseObject({
  feature: z.string().min(1),
  version: z.union([z.string(), z.number()]).optional(),
  tasks: z.array(Task).min(1, 'must have at least one task'),
  levels: z.record(z.string(), Level).optional(),
});
export type TaskGraph = z.infer<typeof TaskGraph>;
