/** What is going on, on stderr; on a terminal in one line that is written over. */
export function progress(text: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\u001B[K${text}` : `${text}\n`);
}

export function note(text: string): void {
  progress(text);
  if (process.stderr.isTTY) process.stderr.write('\n');
}
