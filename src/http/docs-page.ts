import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface DocsPage {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

/** The page with its style and script inside, and the policy under which nothing else may run or load. */
export function loadDocsPage(): DocsPage {
  const style = readBeside('docs.css');
  const script = readBeside('docs.js');
  const html = replaceOnce(
    replaceOnce(
      readBeside('docs.html'),
      '<link rel="stylesheet" href="docs.css" />',
      `<style>${style}</style>`,
    ),
    '<script src="docs.js"></script>',
    `<script>${script}</script>`,
  );
  const contentSecurityPolicy = [
    "default-src 'none'",
    `style-src ${hashSource(style)}`,
    `script-src ${hashSource(script)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return { html, contentSecurityPolicy };
}

function readBeside(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

function replaceOnce(text: string, part: string, replacement: string): string {
  if (!text.includes(part)) throw new RangeError(`docs.html lacks ${part}`);
  return text.replace(part, () => replacement);
}

function hashSource(content: string): string {
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}
