import { randomBytes } from 'node:crypto';
import type { ExecRequest } from '../../core/exec.ts';
import type { Secret } from './secret.ts';

/** A file that the agent finds in its home folder. */
export interface CredentialFile {
  /** Below the home folder. */
  readonly path: string;
  readonly mode: 0o400 | 0o600;
  readonly content: Secret;
}

/** What an agent gets on stdin before its task. */
export interface AgentCredentials {
  readonly variables: Readonly<Record<string, Secret>>;
  readonly files: readonly CredentialFile[];
}

/**
 * A new home folder for one run of the agent, in the memory of the cell. SECURITY: nobody knows its name before, so
 * nothing can lie there in wait; after the end of the agent `toRemoveRequest` takes it away.
 */
export function newCredentialFolder(parent = '/tmp'): string {
  return `${parent}/agent-${randomBytes(8).toString('hex')}`;
}

/** The agent's command, to be started with `encodeCredentials` as the first bytes of its stdin. */
export function withCredentials(
  folder: string,
  command: readonly [string, ...string[]],
): Pick<ExecRequest, 'argv' | 'verbatim'> {
  return {
    argv: ['perl', '{guest}/with-credentials.pl'],
    verbatim: { argv: [folder, '--', ...command], env: {} },
  };
}

/** Removes the home folder with everything that the agent left in it; run in the cell, as its user. */
export function toRemoveRequest(folder: string): ExecRequest {
  return { argv: ['rm', '-rf', '--'], env: {}, verbatim: { argv: [folder], env: {} } };
}

/**
 * What `guest/with-credentials.pl` reads from stdin: a line with the number of bytes, and fields, each its length as a
 * line and its bytes. SECURITY: it holds the values; it is written to the stdin of the agent and nowhere else.
 */
export function encodeCredentials({ variables, files }: AgentCredentials): Uint8Array {
  const named = Object.entries(variables);
  const fields = [
    String(named.length),
    ...named.map(([name, value]) => `${name}=${value.reveal()}`),
    String(files.length),
    ...files.flatMap(({ path, mode, content }) => [path, mode.toString(8), content.reveal()]),
  ];
  const payload = Buffer.concat(fields.map((field) => toField(Buffer.from(field))));
  return toField(payload);
}

function toField(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]);
}
