import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledTools } from '../../../src/app/drivers/make-drivers.ts';
import { COMPILE_CACHE } from '../command.ts';
import { findProgram } from '../find-program.ts';
import { listProcesses, waitFor } from '../leftovers.ts';
import { isRoot } from '../needs.ts';
import { tmpdirOnTmpfs } from '../server.ts';
import type { ContainerRecord } from './configuration.ts';
import { makeImage } from './image-commands.ts';
import { DoubleState, type Control, type Fault } from './state.ts';

const MAIN = fileURLToPath(new URL('container.ts', import.meta.url));
export const IMAGE = 'hotcell-test-base:latest';

/** Why the double cannot make containers here, or undefined. */
export function whyNoDouble(): string | undefined {
  if (!isRoot) return 'the double of container makes its cells as root';
  return findProgram('runc') === undefined ? 'runc is not installed (apt-get install runc)' : undefined;
}

export interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A double of the `container` command with a state of its own, and the strings by which a test pulls it. */
export class AppleDouble implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdirOnTmpfs(), 'apple-double-'));
  /** The command. */
  readonly cli = join(this.folder, 'container');
  readonly state: DoubleState;

  constructor(control: Partial<Control> = {}) {
    chmodSync(this.folder, 0o711);
    this.state = new DoubleState(this.folder);
    this.state.control = {
      version: '1.2.2',
      services: 'running',
      registry: [],
      tools: bundledTools(),
      ...control,
    };
    this.state.addImage(makeImage(IMAGE));
    // Whoever calls it may have an environment of its own.
    const variables = Object.entries(COMPILE_CACHE).map(([name, value]) => `export ${name}='${value}'\n`);
    const command = `exec '${process.execPath}' '${MAIN}' '${this.folder}' "$@"`;
    writeFileSync(this.cli, `#!/bin/sh\n${variables.join('')}${command}\n`, { mode: 0o755 });
  }

  run(...argv: readonly string[]): Answer {
    const { status, stdout, stderr } = spawnSync(this.cli, argv, { encoding: 'utf8', input: '' });
    return { code: status, stdout, stderr };
  }

  spawn(...argv: readonly string[]) {
    return spawn(this.cli, argv, { stdio: ['pipe', 'pipe', 'pipe'] });
  }

  control(change: Partial<Control>): void {
    this.state.control = { ...this.state.control, ...change };
  }

  fault(fault: Fault): void {
    this.state.addFault(fault);
  }

  containers(): ContainerRecord[] {
    return this.state.listContainers();
  }

  ids(): string[] {
    return this.containers()
      .map(({ configuration }) => configuration.id)
      .toSorted();
  }

  /** Every call so far. */
  calls(): string[][] {
    const lines = readFileSync(join(this.folder, 'calls.jsonl'), 'utf8').split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line) as string[]);
  }

  /** Processes of the host that belong to it: calls, and those that stay with containers. */
  processes(): string[] {
    return listProcesses().filter((line) => line.includes(this.folder));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.state.clearFaults();
    this.control({ services: 'running' });
    const ids = this.ids();
    if (ids.length > 0) this.run('delete', '--force', ...ids);
    await waitFor('nothing of the double runs', () => this.processes().length === 0);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
