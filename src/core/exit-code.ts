/** What a shell shows of a program that did not end by itself, of cells and of this machine alike. */
export const TIMEOUT_CODE = 124;
export const CANCELLED_CODE = 130;

export function codeOfSignal(signal: number): number {
  return 128 + signal;
}
