import { existsSync } from 'node:fs';
import { findProgram } from '../process/find-program.ts';

const NEEDED = ['mkfs.ext4', 'mount', 'umount', 'cp', 'e2fsck', 'resize2fs', 'fallocate', 'fstrim'];

/** Why this host has no bounded file systems for workspaces; undefined if it has. */
export function whyNoVolumes(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has loop devices';
  if (process.geteuid?.() !== 0) return 'only root may mount';
  if (!existsSync('/dev/loop-control')) return 'there is no /dev/loop-control';
  const missing = NEEDED.filter((program) => findProgram(program) === undefined);
  return missing.length === 0
    ? undefined
    : `${missing.join(', ')} not found (on Debian: apt-get install e2fsprogs mount)`;
}
