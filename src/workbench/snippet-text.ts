/** SECURITY: names become names of files. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const DESCRIPTION = '@description';
const COMMENT_STARTS = ['//', '/*', '*'];
const LONGEST_DESCRIPTION = 500;
const USE = /^([ \t]*)\/\/[ \t]*@use-snippet:[ \t]*([A-Za-z0-9_-]{1,64})[ \t]*$/gm;
const IMPORT = /["'`]snippets\/([A-Za-z0-9_-]{1,64})(?:\.ts)?["'`]/g;
const EXPORT = /^export\s+(?:async\s+)?(?:function\*?|const|let|var|class|enum)\s+([A-Za-z_$][\w$]*)/gm;

/** What snippets are imported from. */
export const SNIPPETS = 'snippets';

export function isSnippetName(name: string): boolean {
  return NAME.test(name);
}

/** What stands after `@description` in a comment; undefined where nothing does. */
export function readDescription(code: string): string | undefined {
  for (const line of code.split(/\r?\n/)) {
    const text = line.trimStart();
    const at = text.indexOf(DESCRIPTION);
    if (at < 0 || !COMMENT_STARTS.some((start) => text.startsWith(start))) continue;
    const words =
      text
        .slice(at + DESCRIPTION.length)
        .split('*/', 1)[0]
        ?.trim() ?? '';
    if (words !== '') return words.slice(0, LONGEST_DESCRIPTION);
  }
  return undefined;
}

/** Names of snippets that the code seems to import. A name in a string that is none does no harm. */
export function findImportedSnippets(code: string): string[] {
  return [...new Set([...code.matchAll(IMPORT)].map(([, name = '']) => name))];
}

/** Those that the code asks for by `// @use-snippet: name`. */
export function findUsedSnippets(code: string): string[] {
  return [...new Set([...code.matchAll(USE)].map(([, , name = '']) => name))];
}

/** Imports what these snippets export, in the lines that ask for them: every other line stays where it was. */
export function importUsed(code: string, snippets: ReadonlyMap<string, string>): string {
  return code.replaceAll(USE, (line, indent: string, name: string) => {
    const snippet = snippets.get(name);
    if (snippet === undefined) return line;
    const names = [...new Set([...snippet.matchAll(EXPORT)].map(([, exported = '']) => exported))];
    const what = names.length === 0 ? '' : `{ ${names.join(', ')} } from `;
    return `${indent}import ${what}"${SNIPPETS}/${name}";`;
  });
}
