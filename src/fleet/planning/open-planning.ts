import { findRepositoryRoot } from '../find-root.ts';
import type { Environment } from '../fleet-machine.ts';
import { HostGit, splitNul } from '../git/host-git.ts';
import { findFeature } from '../state/features.ts';

/** A feature that is being planned. Nothing has to be committed yet, and no state be there. */
export interface OpenPlanning {
  readonly root: string;
  readonly feature: string;
  /** What git knows of, by path. */
  listFiles(): Promise<string[]>;
}

const MOST_LIST_BYTES = 64 * 1024 ** 2;

export function openPlanning(folder: string, named: string | undefined, env: Environment): OpenPlanning {
  const root = findRepositoryRoot(folder);
  const feature = findFeature(root, { named, variable: env['MAHABHARATHA_FEATURE'] });
  return {
    root,
    feature,
    listFiles: async () => {
      const git = await HostGit.open(root, env);
      return splitNul(await git.run(['ls-files', '-z'], { limitBytes: MOST_LIST_BYTES }));
    },
  };
}
