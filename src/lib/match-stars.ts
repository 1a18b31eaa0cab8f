/**
 * Whether the whole text matches; `*` in the pattern stands for anything, and a star in the text is only matched by one.
 * SECURITY: in one pass by hand, because a regular expression with many stars takes forever.
 */
export function matchesStars(pattern: string, text: string): boolean {
  const [head = '', ...others] = pattern.split('*');
  const tail = others.pop();
  if (tail === undefined) return text === head;
  if (!text.startsWith(head)) return false;
  let at = head.length;
  for (const piece of others) {
    const found = text.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return text.length - tail.length >= at && text.endsWith(tail);
}
