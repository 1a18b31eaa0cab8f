import type { PathRule, PathUse } from './landlock.ts';

/** What programs need of macOS itself, beside the paths of a command. */
const SYSTEM = `(version 1)
(deny default)
(deny process-info*)
(allow process-info* (target self))
(allow signal (target self))
(allow signal (target children))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.logger"))
(allow file-read-metadata)
(allow file-read* (literal "/") (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow file-read* file-map-executable (subpath "/usr/lib") (subpath "/System/Library") (subpath "/System/Volumes/Preboot/Cryptexes/OS"))`;

const OPERATIONS: Readonly<Record<PathUse, string>> = {
  read: 'file-read* file-map-executable',
  run: 'file-read* file-map-executable process-exec',
  write: 'file-read* file-write*',
  work: 'file-read* file-write* file-map-executable process-exec',
  device: 'file-read* file-write-data',
};

export interface SeatbeltSubject {
  readonly paths: readonly PathRule[];
  readonly port: number | undefined;
  readonly forks: boolean;
}

/** The profile for sandbox-exec. SECURITY: paths are quoted; nothing of them is ever part of the profile's own words. */
export function toSeatbeltProfile({ paths, port, forks }: SeatbeltSubject): string {
  return [
    SYSTEM,
    ...(forks ? ['(allow process-fork)'] : []),
    ...paths.map(({ path, use }) => `(allow ${OPERATIONS[use]} (subpath ${quote(path)}))`),
    ...(port === undefined ? [] : [`(allow network-outbound (remote ip "localhost:${port}"))`]),
  ].join('\n');
}

export function toSeatbeltCommand(
  subject: SeatbeltSubject,
  program: string,
  args: readonly string[],
): [string, ...string[]] {
  return ['/usr/bin/sandbox-exec', '-p', toSeatbeltProfile(subject), program, ...args];
}

function quote(path: string): string {
  return `"${path.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
