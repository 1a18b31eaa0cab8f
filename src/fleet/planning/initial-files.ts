import { mkdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { makeFile, readText, replaceFile } from './keep-file.ts';

/** Every value is the default: whoever changes nothing loses nothing by removing the file. */
const INITIAL_CONFIG = `# How mahabharatha works in this repository. Every value here is the default; remove what you do not change.
# Credentials do not belong in this file: it is meant to be committed.

workers:
  max_concurrent: 5 # unless --workers says otherwise
  launcher_type: auto # container, subprocess, or auto: container where its cells can be made
  driver: auto # of mode container, as --driver; auto: the first that has what the agent needs
  timeout_minutes: 30 # of one attempt at a task
  retry_attempts: 3 # after the first attempt
  backoff_strategy: exponential # exponential, linear or fixed
  backoff_base_seconds: 30
  backoff_max_seconds: 300

heartbeat:
  interval_seconds: 15
  stall_timeout_seconds: 120 # a worker that is silent for so long counts as crashed

# The program that does the tasks. It gets its prompt on stdin (prompt: arg makes it the last argument), works in the
# current folder, and ends with 0 done, 2 checkpoint, 3 blocked or 4 escalation.
agent:
  command: claude
  args: ['--print', '--dangerously-skip-permissions']
  prompt: stdin
  env: {}

# What cells may reach: hosts, *.patterns, and the presets npm, pypi and github. Mode subprocess has no such walls.
network:
  allow: [api.anthropic.com, npm, pypi]

credentials:
  api_key: agent # agent: it gets ANTHROPIC_API_KEY; gate: only the gate knows the key and adds it; none
  oauth: false # true: it signs in with your CLAUDE_CODE_OAUTH_TOKEN, or the access token of ~/.claude

# Variables of yours that workers get, by name or with *; most others are dropped.
environment:
  allow: []

worktree:
  copy: ['.env', '.env.local'] # ignored files that every worktree gets
  setup: auto # auto: npm and pip install what the repository asks for, once; none

# Run on what was merged after each level, in a cell of its own:
#   - name: tests
#     command: npm test
#     required: true # a level that does not pass it ends the run
#     timeout: 300
quality_gates: []

# Of each worker.
resources:
  container_memory_limit: 4g
  container_cpu_limit: 2
  container_processes: 1024
  container_tmp: 4g # in memory
  worktree_disk: 10g # of its worktree; a task that needs more fails

logging:
  level: info
  ephemeral_retain_on_success: true # keep what the agent said about tasks that are complete
  max_log_size_mb: 50

# What happens when a task changes files that it does not own: warn, enforce (the attempt fails) or off.
ownership: warn
`;

/** State, logs and caches are of this machine; the configuration is for everybody. */
const IGNORED = '*\n!.gitignore\n!config.yaml\n';

export interface InitialFile {
  readonly path: string;
  readonly isNew: boolean;
}

/** Makes what is missing, and never touches what is there. */
export async function writeInitialFiles(root: string): Promise<InitialFile[]> {
  const config = join(root, '.mahabharatha/config.yaml');
  const specs = join(root, '.gsd/specs');
  const made: InitialFile[] = [];
  const note = (path: string, isNew: boolean): void => void made.push({ path: relative(root, path), isNew });
  note(config, await makeFile(root, config, INITIAL_CONFIG));
  const ignore = join(root, '.mahabharatha/.gitignore');
  // A start before this one hides all of the folder.
  if ([undefined, '*\n'].includes(await readText(ignore))) await replaceFile(root, ignore, IGNORED);
  note(specs, (await mkdir(specs, { recursive: true })) !== undefined);
  return made;
}
