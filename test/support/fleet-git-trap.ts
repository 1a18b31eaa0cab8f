import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './find-program.ts';
import type { FleetRepository } from './fleet-repository.ts';

export interface GitTrap {
  /** The first of the folders that git is looked for in. */
  readonly folder: string;
  /** For PATH of the orchestrator; those who clear the environment keep it. */
  readonly path: string;
  /** From here on, if it was set for `later`. */
  arm(): void;
  hasSprung(): boolean;
}

export interface GitMoment {
  /** Part of the command line of git, words with one space between. */
  readonly words: string;
  readonly when: 'before' | 'after';
  /** So many such calls before it are let through. */
  readonly skip?: number;
  /** Calls before `arm` are let through. */
  readonly later?: true;
}

/**
 * The git of this machine, but for one moment: at a call with these words it kills whoever called it with SIGKILL, before it
 * has done its work or right after it. Once.
 */
export function setGitTrap(
  repository: FleetRepository,
  { words, when, skip = 0, later }: GitMoment,
): GitTrap {
  const real = findProgram('git');
  if (real === undefined) throw new Error('there is no git');
  const folder = repository.beside('trap');
  const sprung = join(folder, 'sprung');
  const seen = join(folder, 'seen');
  const armed = join(folder, 'armed');
  const arm = (): void => writeFileSync(armed, '');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  // The orchestrator may be somebody else.
  chmodSync(folder, 0o777);
  const script = [
    '#!/bin/bash',
    `if [[ "$*" == *${JSON.stringify(words)}* && -e ${armed} && ! -e ${sprung} ]]; then`,
    `  printf . >> ${seen}`,
    `  if (($(wc -c < ${seen}) > ${skip})); then`,
    `    : > ${sprung}`,
    ...(when === 'after' ? [`    ${real} "$@"`] : []),
    '    kill -KILL "$PPID"',
    '    exit 1',
    '  fi',
    'fi',
    `exec ${real} "$@"`,
  ];
  writeFileSync(join(folder, 'git'), `${script.join('\n')}\n`);
  chmodSync(join(folder, 'git'), 0o755);
  if (later === undefined) arm();
  return { arm, folder, path: `${folder}:${process.env['PATH'] ?? ''}`, hasSprung: () => existsSync(sprung) };
}
