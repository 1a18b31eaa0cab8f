import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { errnoOf } from '../../src/lib/errno.ts';

const BITE = Buffer.alloc(1024 * 1024, 1);

/** A disk of this size that can be filled without harm to anybody else. It goes with `umount`. */
export function mountDisk(folder: string, bytes: number): void {
  mkdirSync(folder, { mode: 0o711 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=711`, 'tmpfs', folder]);
}

/** What an orchestrator that was killed has left mounted in its repository. */
export function detachMounts(root: string): void {
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith(`${root}/`));
  for (const point of points.toReversed()) execFileSync('umount', ['--lazy', point]);
}

/** Until there is no room for one more byte on the disk that the file is on. */
export function fillWith(file: string): void {
  const descriptor = openSync(file, 'w');
  try {
    for (let size = BITE.length; size >= 1;) {
      try {
        writeSync(descriptor, BITE, 0, size);
      } catch (error) {
        if (errnoOf(error) !== 'ENOSPC') throw error;
        size = Math.floor(size / 2);
      }
    }
  } finally {
    closeSync(descriptor);
  }
}
