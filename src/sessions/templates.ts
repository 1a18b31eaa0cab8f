import { PIP_INSTALL } from '../cells/pip-install.ts';
import type { CellImage } from '../core/cell.ts';
import type { RuntimeType } from '../core/session-words.ts';

/** What a kind of project needs. */
export interface Template {
  readonly image: CellImage;
  /** What this kind of project is usually run with. */
  readonly defaultCommand: string;
  readonly setup: Setup | undefined;
  /** Folders below the workspace with programs of the project's dependencies. */
  readonly programs: readonly string[];
}

export interface Setup {
  readonly command: string;
  /** What it depends on: it runs again when one of them changes. */
  readonly manifest: readonly [string, ...string[]];
  /** What it makes. That it was made is noted inside, so that both go together and come back together. */
  readonly product: string;
}

export const TEMPLATES: Readonly<Record<RuntimeType, Template>> = {
  node: {
    image: { name: 'node:24-slim', recipe: 'node' },
    defaultCommand: 'npm test',
    setup: {
      command: 'npm install',
      manifest: ['package.json', 'package-lock.json'],
      product: 'node_modules',
    },
    programs: ['node_modules/.bin'],
  },
  python: {
    image: { name: 'python:3.10-slim', recipe: 'python' },
    defaultCommand: 'python main.py',
    setup: { command: PIP_INSTALL, manifest: ['requirements.txt'], product: '.venv' },
    programs: ['.venv/bin'],
  },
  shell: {
    image: { name: 'debian:12-slim', recipe: 'shell' },
    defaultCommand: 'bash main.sh',
    setup: undefined,
    programs: [],
  },
};

/**
 * A script for `bash -c` that runs the set-up command unless it has succeeded with these very manifests before. It is
 * quiet when there is nothing to do. All it prints is stderr, so that stdout is only what the command itself prints.
 */
export function toSetupScript({ command, manifest, product }: Setup): string {
  const [first] = manifest;
  return [
    'exec 1>&2',
    `[ -f ${first} ] || exit 0`,
    `hash() { cat ${manifest.join(' ')} 2>/dev/null | sha256sum; }`,
    `stamp=${product}/.hotcell-setup`,
    'before=$(hash)',
    'grep -qxF -- "$before" "$stamp" 2>/dev/null && exit 0',
    // In a shell of its own: it may exit.
    `(\n${command}\n) || exit`,
    // Also as they are now, because `npm install` writes its lock file. The next session may come with it or without.
    `mkdir -p ${product} && { echo "$before"; hash; } > "$stamp"`,
  ].join('\n');
}
