import type { ScanProblem } from './scan-messages.ts';

export type CodePosition = Pick<ScanProblem, 'line' | 'column' | 'frame'>;

const BEFORE = 60;
const AFTER = 40;

/** Where in the code something is. Lines may be as long as the code is: only a part of one is shown. */
export function toCodePosition(code: string, offset: number): CodePosition {
  const at = Math.min(Math.max(offset, 0), code.length);
  const start = code.lastIndexOf('\n', at - 1) + 1;
  const newline = code.indexOf('\n', at);
  const end = newline === -1 ? code.length : newline;
  let line = 1;
  for (let from = code.indexOf('\n'); from !== -1 && from < at; from = code.indexOf('\n', from + 1)) line++;
  const from = Math.max(start, at - BEFORE);
  const shown = code.slice(from, Math.min(end, at + AFTER)).replaceAll(/\p{Cc}/gu, ' ');
  const margin = `${line} | `;
  return {
    line,
    column: at - start + 1,
    frame: `${margin}${shown}\n${' '.repeat(margin.length + at - from)}^`,
  };
}
