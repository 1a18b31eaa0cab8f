import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The door of stdio in front of scripted sessions. */
export const MCP_ENTRY = fileURLToPath(new URL('mcp-entry.ts', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one of the installed tools with the Node of the project first in the path. */
export async function runTool(script: string, args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const told = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (told.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (told.stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...told };
}
