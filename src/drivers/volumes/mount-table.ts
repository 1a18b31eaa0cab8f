import { readFile } from 'node:fs/promises';

/** Where something is mounted, from the kernel's own table. */
export async function mountPoints(): Promise<Set<string>> {
  return new Set(parseMountPoints(await readFile('/proc/self/mountinfo', 'utf8')));
}

/** The fifth word of every line; the kernel writes blanks and the like in octal. */
export function parseMountPoints(table: string): string[] {
  return table
    .split('\n')
    .map((line) => line.split(' ')[4])
    .filter((word) => word !== undefined)
    .map((word) =>
      word.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8))),
    );
}
