import { createHash } from 'node:crypto';
import { lstatSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** A path and all below it. */
export function listTree(path: string): string[] {
  const info = lstatSync(path);
  if (!info.isDirectory()) return [path];
  return [path, ...readdirSync(path).flatMap((name) => listTree(join(path, name)))];
}

/** Mode, owner and content. */
export function fingerprint(path: string): string {
  const info = lstatSync(path);
  const content = info.isFile() ? readFileSync(path) : info.isSymbolicLink() ? readlinkSync(path) : '';
  return `${info.mode.toString(8)} ${info.uid}:${info.gid} ${createHash('sha256').update(content).digest('hex')}`;
}

/** Nothing, of what is not there or not for us. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
