/** Characters that a terminal obeys instead of showing them; line ends and tabs may stay. */
// oxlint-disable-next-line no-control-regex -- these are what it is about
const COMMANDS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** SECURITY: for text that others chose. It shows what a terminal would otherwise do. */
export function toPrintable(text: string): string {
  return text.replaceAll(
    COMMANDS,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
