/** One piece of code to run once, with what belongs to it. */
export interface Job {
  readonly code: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Extra files beside the code; paths are relative and stay below its folder. */
  readonly files: readonly JobFile[];
}

export interface JobFile {
  readonly path: string;
  readonly content: Uint8Array;
}

/**
 * Says what is wrong with a relative path from outside, or undefined if it may be used below some folder.
 * A first line only: whoever opens the file must still be confined by the kernel.
 */
export function relativePathProblem(path: string): string | undefined {
  if (path === '') return 'must not be empty';
  if (path.includes('\0')) return 'must not contain NUL';
  if (path.length > 1024) return 'must have at most 1024 characters';
  if (path.startsWith('/')) return 'must be relative, with / between its parts';
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    return 'must not have empty, . or .. parts';
  }
  if (parts.some((part) => new TextEncoder().encode(part).length > 255))
    return 'has a part of more than 255 bytes';
  return undefined;
}
