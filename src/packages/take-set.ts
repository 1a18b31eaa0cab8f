import { HotcellError, messageOf } from '../core/errors.ts';
import { ArchiveRefusal } from '../workspace/archive-refusal.ts';
import { extractArchive } from '../workspace/extract-archive.ts';
import type { Ecosystem } from './ecosystem.ts';
import { setKey, type InstallRequest } from './install-request.ts';
import { quoted } from './package-spec.ts';
import type { SetFacts } from './set-folder.ts';

export interface Taking {
  readonly ecosystem: Ecosystem;
  readonly request: InstallRequest;
  /** Empty, and nobody else's. */
  readonly into: string;
  readonly mostBytes: number;
  readonly mostItems: number;
}

/**
 * Takes what a cell says it has installed. SECURITY: all of it is hostile. It must be plain files below the folder, and
 * the lock file must be about exactly what was asked for: thus nobody can make a set that others will take for theirs.
 */
export async function takeSet(
  archive: AsyncIterable<Uint8Array>,
  { ecosystem, request, into, mostBytes, mostItems }: Taking,
): Promise<{ key: string; facts: SetFacts }> {
  const { platform } = request;
  try {
    const extraction = { into, below: [], mostBytes, mostItems, isPublic: true };
    const { bytes, leftOut } = await extractArchive(archive, extraction);
    if (leftOut[0] !== undefined) throw new Error(`${quoted(leftOut[0])} is no plain file of a package`);
    const { lock, packages, places } = await ecosystem.inspect(into, request);
    const facts = { platform, bytes, packages: [...packages], places: [...places] };
    return { key: setKey(platform, lock), facts };
  } catch (error) {
    throw toRefusal(error, request);
  }
}

function toRefusal(error: unknown, { specs }: InstallRequest): HotcellError {
  if (error instanceof HotcellError) return error;
  if (error instanceof Error && 'syscall' in error) {
    // It is our disk that fails, not the package.
    const problem = 'code' in error ? String(error.code) : 'unknown';
    return new HotcellError('INTERNAL', `packages cannot be stored: ${problem}`, { cause: error });
  }
  const names = specs.map(({ name }) => name).join(', ');
  const isTooLarge = error instanceof ArchiveRefusal && error.code === 'FILE_TOO_LARGE';
  const why = isTooLarge ? `it is too large: ${messageOf(error)}` : messageOf(error);
  return new HotcellError('PACKAGE_UNAVAILABLE', `${names} cannot be installed: ${why}`, {
    hint: isTooLarge
      ? 'Use a smaller package, or have the operator raise the limits of installations.'
      : 'Use another package: this one does not come as it should.',
    cause: error,
  });
}
