import { spawn, type ChildProcess } from 'node:child_process';
import type { FleetRepository } from './fleet-repository.ts';
import { instancesOf } from './footprint.ts';
import { COMPILE_CACHE, MAIN } from './command.ts';
import { dataDirectoryOf } from './server.ts';

/** Nobody listens there. */
export const NO_ENGINE = 'unix:///nonexistent/docker.sock';
const LOOK_MS = 100;

export interface FleetEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface FleetCommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Instead of node with our main: the launcher that people call. */
  readonly program?: string;
}

/** `mahabharatha …` in a process of its own, in a test's repository. */
export class FleetCommand implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly ended: Promise<FleetEnd>;
  /** Folders of its drivers in the state directory, as long as they were there. */
  readonly instances = new Set<string>();
  stdout = '';
  stderr = '';

  private constructor(child: ChildProcess, repository: FleetRepository) {
    this.child = child;
    child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    const look = setInterval(() => this.#look(repository.state), LOOK_MS);
    this.ended = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        clearInterval(look);
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  #look(state: string): void {
    for (const id of instancesOf(state)) this.instances.add(id);
  }

  static start(
    repository: FleetRepository,
    args: readonly string[],
    { env = {}, program }: FleetCommandOptions = {},
  ): FleetCommand {
    const [file, ...before] = program === undefined ? [process.execPath, MAIN, 'mahabharatha'] : [program];
    const child = spawn(file ?? '', [...before, ...args], {
      cwd: repository.root,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: repository.home,
        HOTCELL_STATE_DIR: repository.state,
        HOTCELL_SESSIONS_DIR: dataDirectoryOf(repository.state),
        DOCKER_HOST: NO_ENGINE,
        ...COMPILE_CACHE,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new FleetCommand(child, repository);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  async kill(signal: NodeJS.Signals): Promise<FleetEnd> {
    this.child.kill(signal);
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL');
  }
}

/** Runs a command to its end. */
export function mahabharatha(
  repository: FleetRepository,
  args: readonly string[],
  options?: FleetCommandOptions,
): Promise<FleetEnd> {
  return FleetCommand.start(repository, args, options).ended;
}

/** The arguments of a way to run workers. */
export const SUBPROCESS = ['--mode', 'subprocess'] as const;
export const OCI = ['--mode', 'container', '--driver', 'oci'] as const;
export const DOCKER = ['--mode', 'container', '--driver', 'docker'] as const;
