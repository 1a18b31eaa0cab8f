import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './find-program.ts';
import type { FleetRepository } from './fleet-repository.ts';

export interface GitTrap {
  /** For PATH of the orchestrator; those who clear the environment keep it. */
  readonly path: string;
  hasSprung(): boolean;
}

export interface GitMoment {
  /** Part of the command line of git, words with one space between. */
  readonly words: string;
  readonly when: 'before' | 'after';
  /** So many such calls before it are let through. */
  readonly skip?: number;
}

/**
 * The git of this machine, but for one moment: at a call with these words it kills whoever called it with SIGKILL, before it
 * has done its work or right after it. Once.
 */
export function setGitTrap(repository: FleetRepository, { words, when, skip = 0 }: GitMoment): GitTrap {
  const real = findProgram('git');
  if (real === undefined) throw new Error('there is no git');
  const folder = repository.beside('trap');
  const sprung = join(folder, 'sprung');
  const seen = join(folder, 'seen');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const script = [
    '#!/bin/bash',
    `if [[ "$*" == *${JSON.stringify(words)}* && ! -e ${sprung} ]]; then`,
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
  return { path: `${folder}:${process.env['PATH'] ?? ''}`, hasSprung: () => existsSync(sprung) };
}
