import type { HostGit } from './host-git.ts';

export interface DiffRequest {
  readonly from: string;
  readonly to: string;
  readonly limitBytes: number;
}

/** From objects alone. SECURITY: no program of the user's configuration is run for it. */
export function diffCommits(git: HostGit, { from, to, limitBytes }: DiffRequest): Promise<Uint8Array> {
  return git.read(
    [
      'diff-tree',
      '-p',
      '--full-index',
      '--no-color',
      '--no-ext-diff',
      '--no-textconv',
      '--submodule=short',
      '--src-prefix=a/',
      '--dst-prefix=b/',
      '--end-of-options',
      from,
      to,
    ],
    { cwd: git.commonDir, limitBytes, cut: true },
  );
}
