import { getSystemErrorMessage } from 'node:util';
import { HotcellError } from '../core/errors.ts';

export const REFUSAL_REASONS = {
  m: 'missing',
  r: 'refused',
  f: 'full',
  c: 'changed',
  l: 'too-much',
} as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[keyof typeof REFUSAL_REASONS];

const ENOTDIR = 20;
const LAST_ERRNO = 133;

/** The guest could not do what was asked. It is about the path with this number in the request. */
export class GuestRefusal extends Error {
  readonly reason: RefusalReason;
  readonly index: number;
  readonly errno: number;

  constructor(reason: RefusalReason, index: number, errno: number) {
    super(`the guest refuses: ${reason}`);
    this.name = 'GuestRefusal';
    this.reason = reason;
    this.index = index;
    this.errno = errno;
  }
}

/** Runs something whose refusals are all about one path. */
export async function aboutPath<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof GuestRefusal ? toFileError(error, path) : error;
  }
}

/** For callers, with the path as they know it. */
export function toFileError(refusal: GuestRefusal, path: string): HotcellError {
  switch (refusal.reason) {
    case 'missing':
      return new HotcellError('FILE_NOT_FOUND', `there is no ${path}`);
    case 'full':
      return new HotcellError(
        'DISK_FULL',
        `the disk of the workspace is full at ${path}; nothing was changed`,
      );
    case 'changed':
      return new HotcellError(
        'FILE_REFUSED',
        `${path} was changed at the same time; nothing was changed by this request`,
      );
    case 'too-much':
      return new HotcellError('FILE_TOO_LARGE', `${path} has too many entries`);
    case 'refused':
      return new HotcellError('FILE_REFUSED', `${path} is refused: ${why(refusal.errno)}`);
  }
}

function why(errno: number): string {
  if (errno === ENOTDIR) return 'something on the way to it is no folder';
  if (errno > 0 && errno <= LAST_ERRNO) return getSystemErrorMessage(-errno);
  return 'a link, a folder or a special file is in its place';
}
