/** What is said between a call of the double and the process that stays with a container, one JSON text in a frame. */
export type ShimRequest =
  | { readonly type: 'start'; readonly attach: boolean; readonly interactive: boolean }
  | { readonly type: 'signal'; readonly signal: string; readonly thenKillAfterMs?: number }
  | {
      readonly type: 'exec';
      readonly words: readonly string[];
      readonly env: readonly string[];
      readonly cwd: string | undefined;
      readonly user: string | undefined;
      readonly interactive: boolean;
    };

/** Types of frames. */
export const FRAME = {
  request: 'Q',
  stdin: 'I',
  stdinEnd: 'E',
  stdout: 'O',
  stderr: 'R',
  started: 'S',
  failed: 'F',
  exited: 'X',
} as const;
export const LARGEST_FRAME = 1024 * 1024;
