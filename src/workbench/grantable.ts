import { isAbsolute, join, sep } from 'node:path';
import { matchesStars } from '../lib/match-stars.ts';
import type { WorkbenchSettings } from './settings.ts';

type Grantable = WorkbenchSettings['grantable'];

/** Whether one of the operator's host patterns has all that this host, or pattern of hosts, stands for. */
export function coversHost(patterns: Grantable['http'], host: string): boolean {
  return patterns.some((pattern) => coversOne(pattern.toLowerCase(), host.toLowerCase()));
}

function coversOne(pattern: string, host: string): boolean {
  if (pattern === '*' || pattern === host) return true;
  if (!pattern.startsWith('*.')) return false;
  const [name = '', port] = host.split(':', 2);
  const [below = '', portOfPattern] = pattern.slice(1).split(':', 2);
  return port === portOfPattern && name.endsWith(below) && name.length > below.length;
}

/** SECURITY: of paths without links only, or a link would lead out of the folder. */
export function coversPath(folders: readonly string[], path: string): boolean {
  return isAbsolute(path) && folders.some((folder) => path === folder || path.startsWith(join(folder, sep)));
}

/** Whether one of the operator's names has all that this name stands for; in both `*` is for anything. */
export function coversVariable(names: Grantable['env'], variable: string): boolean {
  return names.some((name) => matchesStars(name, variable));
}
