import { execFile } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import { basename, isAbsolute, join, resolve } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import type { FleetConfig } from '../fleet-config.ts';
import { PLAIN_MODE, type FleetSite } from '../fleet-site.ts';

interface AgentToldOf {
  readonly site: Pick<FleetSite, 'mode' | 'agentVersions'>;
  readonly agent: FleetConfig['agent'];
}

export interface AgentCheck extends AgentToldOf {
  readonly site: Pick<FleetSite, 'mode' | 'tools' | 'agentVersions'>;
  /** Of every program of a worker. */
  readonly variables: Readonly<Record<string, string>>;
  /** Of the repository. */
  readonly root: string;
  /** The caller's home folder. */
  readonly home: string;
  readonly uid: number;
  /** How long the agent may take to say its version. */
  readonly askMs?: number;
}

const CLAUDE = 'claude';
const SKIPS_PERMISSIONS =
  /^(?:--dangerously-skip-permissions|bypassPermissions|--permission-mode=bypassPermissions)$/;
const VERSION = /^(\d+\.\d+\.\d+\S*) \(Claude Code\)/;
/** Of plain processes where the caller has none. */
const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';
const ASK_MS = 10_000;

export function isClaudeCode({ command }: Pick<FleetConfig['agent'], 'command'>): boolean {
  return basename(command) === CLAUDE;
}

/**
 * Before anything is made: refuses an agent that could not do a single task as a plain process; a cell was looked at when it
 * was chosen. Returns what people should know of the agent.
 */
export async function checkAgent(check: AgentCheck): Promise<string[]> {
  const { site, agent } = check;
  if (site.mode === PLAIN_MODE) {
    const variables = { ...check.variables, ...agent.env };
    const program = await findAgent(check, variables['PATH'] ?? USUAL_PATH);
    if (!isClaudeCode(agent)) return [];
    refuseRoot(check, variables);
    if (program === undefined) return [];
    const env = { ...check.variables, HOME: check.home };
    return describeVersion(await askVersion(program, env, check.askMs), site, program);
  }
  return agent.command === CLAUDE
    ? describeVersion(site.agentVersions.inCells, site, 'the Claude Code of the cells')
    : [];
}

/** Undefined: it is one that comes with us. */
async function findAgent(
  { agent: { command }, root, site }: AgentCheck,
  path: string,
): Promise<string | undefined> {
  const isPath = command.includes('/');
  const folders = path.split(':').filter((folder) => isAbsolute(folder));
  const places = isPath ? [resolve(root, command)] : folders.map((folder) => join(folder, command));
  for (const place of places) if (await canRun(place)) return place;
  if (!isPath && site.tools.includes(command)) return undefined;
  const where = isPath ? `there is no program ${places[0]}` : `there is no program ${command} on your PATH`;
  throw new HotcellError('INVALID_REQUEST', `the agent cannot be started: ${where}`, {
    hint: isClaudeCode({ command })
      ? 'Install Claude Code on this machine, or let workers have cells: hotcell fleet build, then --mode container.'
      : 'Install it, or name another in .mahabharatha/config.yaml (agent.command): by a name on PATH, or by a path from the root of the repository.',
  });
}

async function canRun(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** As Claude Code itself would, in every single task. */
function refuseRoot({ agent, uid }: AgentCheck, variables: Readonly<Record<string, string>>): void {
  const flag = agent.args.find((word) => SKIPS_PERMISSIONS.test(word));
  if (uid !== 0 || flag === undefined || variables['IS_SANDBOX'] === '1') return;
  throw new HotcellError('INVALID_REQUEST', `Claude Code does not work as root with ${flag}`, {
    hint: [
      'Start it as another user than root,',
      'or let workers have cells (hotcell fleet build, then --mode container),',
      'or say that this whole machine is a sandbox: agent.env with IS_SANDBOX: "1" in .mahabharatha/config.yaml.',
    ].join('\n'),
  });
}

/** What it says itself, if it does so soon. */
function askVersion(
  program: string,
  env: Readonly<Record<string, string>>,
  timeout = ASK_MS,
): Promise<string | undefined> {
  const options = { env, cwd: '/', timeout, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 } as const;
  return new Promise((settle) => {
    const child = execFile(program, ['--version'], options, (error, stdout) =>
      settle(error === null ? VERSION.exec(stdout)?.[1] : undefined),
    );
    child.stdin?.end();
  });
}

/** A version is a word. SECURITY: what says it may be anything in the cell. */
const LONGEST_VERSION = 40;

/** What people should know of the version that an agent names when it begins, unless the start has told them. */
export function describeBegun(version: string, { site, agent }: AgentToldOf): string | undefined {
  const isTold =
    site.mode === PLAIN_MODE
      ? isClaudeCode(agent)
      : agent.command === CLAUDE && site.agentVersions.inCells === version;
  if (isTold) return undefined;
  return describeVersion(version.slice(0, LONGEST_VERSION), site, 'the agent, Claude Code,')[0];
}

function describeVersion(
  version: string | undefined,
  { agentVersions: { tried } }: AgentToldOf['site'],
  what: string,
): string[] {
  if (version === tried) return [];
  const of = version === undefined ? 'an unknown version' : `version ${version}`;
  return [`${what} is of ${of}; this release was tried with ${tried}`];
}
