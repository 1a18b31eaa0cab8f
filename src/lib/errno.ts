/** The `code` of a system error, such as ENOENT. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** A file or a folder with something in it has that name already. */
export function isNameTaken(error: unknown): boolean {
  return /^(?:ENOTEMPTY|EEXIST)$/.test(errnoOf(error) ?? '');
}
