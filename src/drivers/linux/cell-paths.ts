import type { PathsInCell } from '../../core/cell.ts';

/** Where a cell keeps its things, the same on every driver that gives cells a root of their own. */
export const WORKDIR_IN_CELL = '/tmp';
export const GUEST_IN_CELL = '/opt/hotcell/guest';

/** What placeholders in argv and env stand for. */
export const PATHS_IN_CELL: PathsInCell = { workdir: WORKDIR_IN_CELL, guest: GUEST_IN_CELL };

/** Who the program of a cell is, inside it. Also its group. */
export const CELL_UID = 1000;
