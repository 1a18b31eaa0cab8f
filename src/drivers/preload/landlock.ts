const bit = (index: number): number => 2 ** index;

const EXECUTE = bit(0);
const WRITE_FILE = bit(1);
const READ_FILE = bit(2);
const READ_DIR = bit(3);
/** REMOVE_DIR, REMOVE_FILE and MAKE_*, up to symbolic links. */
const CHANGE_FOLDER = bit(13) - bit(4);
const MAKE_DEVICES = bit(6) + bit(11);
/** Links and moves between folders, since version 2. */
const REFER = bit(13);
/** Since version 3. */
const TRUNCATE = bit(14);
/** Since version 5. */
const IOCTL_DEV = bit(15);

const BIND_TCP = 1;
const CONNECT_TCP = 2;
const SCOPE_ABSTRACT_SOCKETS = 1;
const SCOPE_SIGNALS = 2;

/** What a path may be used for, with everything below it. */
export type PathUse = 'read' | 'run' | 'write' | 'work' | 'device';

export interface PathRule {
  readonly path: string;
  readonly use: PathUse;
  /** An empty file is made when there is none: rules hold for files, not for names. */
  readonly make?: boolean;
}

export interface LandlockPlan {
  /** `struct landlock_ruleset_attr`, as long as this version has it: files, network, scopes. */
  readonly handled: readonly number[];
  readonly rules: readonly {
    readonly path: string;
    readonly rights: number;
    /** The same for something that is no folder. */
    readonly fileRights: number;
    readonly make: boolean;
  }[];
}

/** The walls by Landlock, for the version that the kernel has. Whatever no rule names is refused. */
export function toLandlockPlan(version: number, paths: readonly PathRule[]): LandlockPlan {
  const refer = version >= 2 ? REFER : 0;
  const truncate = version >= 3 ? TRUNCATE : 0;
  const ioctl = version >= 5 ? IOCTL_DEV : 0;
  const read = READ_FILE + READ_DIR;
  const write = read + WRITE_FILE + CHANGE_FOLDER - MAKE_DEVICES + refer + truncate;
  const rights: Readonly<Record<PathUse, number>> = {
    read,
    run: read + EXECUTE,
    write,
    work: write + EXECUTE,
    device: READ_FILE + WRITE_FILE + truncate,
  };
  const forFiles = EXECUTE + WRITE_FILE + READ_FILE + truncate + ioctl;
  const files = EXECUTE + WRITE_FILE + read + CHANGE_FOLDER + refer + truncate + ioctl;
  return {
    handled: [
      files,
      ...(version >= 4 ? [BIND_TCP + CONNECT_TCP] : []),
      ...(version >= 6 ? [SCOPE_ABSTRACT_SOCKETS + SCOPE_SIGNALS] : []),
    ],
    rules: paths.map(({ path, use, make }) => ({
      path,
      rights: rights[use],
      fileRights: both(rights[use], forFiles),
      make: make ?? false,
    })),
  };
}

function both(one: number, other: number): number {
  return Number(BigInt(one) & BigInt(other));
}

/** Since which version processes outside cannot be signalled. */
export const SCOPES_SINCE = 6;
export const TRUNCATION_SINCE = 3;
