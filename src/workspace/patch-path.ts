const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  t: '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
  '"': '"',
  '\\': '\\',
};

/** The name in a `---` or `+++` line: git quotes odd ones as C does, and others put a time behind a tab. */
export function unquote(text: string): string {
  const name = text.replace(/\r$/, '');
  if (!name.startsWith('"')) return name.replace(/\t.*$/, '').trimEnd();
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(name)?.[1];
  if (quoted === undefined) return name;
  // The numbers are bytes, several of which make one character.
  const bytes = Buffer.from(quoted)
    .toString('latin1')
    .replace(/\\([0-7]{1,3}|.)/g, (_, code: string) =>
      /^[0-7]/.test(code) ? String.fromCharCode(Number.parseInt(code, 8) & 0xff) : (ESCAPES[code] ?? code),
    );
  return Buffer.from(bytes, 'latin1').toString();
}

/** Without the letter that git puts before it. */
export function toHeaderPath(name: string, prefix: 'a/' | 'b/'): string {
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

/** The name in `a/NAME b/NAME`, both being the same; undefined where they are not. */
export function toGitPath(names: string): string | undefined {
  if (names.startsWith('"')) {
    const [first, second] = names.split('" "');
    if (first === undefined || second === undefined) return undefined;
    const [one, other] = [unquote(`${first}"`).slice(2), unquote(`"${second}`).slice(2)];
    return one === other ? one : undefined;
  }
  const half = (names.length - 1) / 2;
  const [one, other] = [names.slice(0, half), names.slice(half + 1)];
  return one.startsWith('a/') && other.startsWith('b/') && one.slice(2) === other.slice(2)
    ? one.slice(2)
    : undefined;
}
