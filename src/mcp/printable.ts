const MOST_CHARACTERS = 300;

/** SECURITY: words of code as a person may read them before deciding: one line, nothing that hides or turns text. */
export function printable(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/gu, '\ufffd');
  return plain.length > MOST_CHARACTERS ? `${plain.slice(0, MOST_CHARACTERS)}…` : plain;
}
