import { createHash, randomBytes } from 'node:crypto';

/** SECURITY: 128 random bits, because whoever knows the id of a session and has the key of its tenant may use it. */
export const newSessionId = (): string => `session_${randomBytes(16).toString('hex')}`;

export const newExecId = (): string => `exec_${randomBytes(8).toString('hex')}`;

/**
 * Names the volume of a project. SECURITY: tenant and user are part of it, so nobody finds another one's files by
 * guessing the name of a project; NUL stands in none of the three.
 */
export function toVolumeKey(tenant: string, user: string | undefined, project: string): string {
  const text = [tenant, user ?? '', project].join('\0');
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
