import { randomBytes } from 'node:crypto';
import { EngineRefusal } from './engine.ts';

/** A name like it, for when it is taken: with four other random digits at its end, or with some if it has none. */
export function toOtherName(name: string): string {
  return `${name.replace(/-[0-9a-f]{4}$/, '')}-${randomBytes(2).toString('hex')}`;
}

/** Was a container refused because another one has its name? Older Podmans say it with the status of a failure. */
export function isNameTaken(error: unknown): boolean {
  if (!(error instanceof EngineRefusal)) return false;
  return error.status === 409 || (error.status === 500 && error.words.includes('name is already in use'));
}
