import * as z from 'zod';
import { PlainText } from './text.ts';

const Name = z.string().min(1).max(64).describe('letters, digits, - and _');

export const SaveSnippetArguments = z.strictObject({
  name: Name,
  code: PlainText.min(1).max(1_000_000).describe('a TypeScript module with a comment that has @description'),
});
export const OfSnippetArguments = z.strictObject({ name: Name });

export const SnippetView = z.object({ name: z.string(), description: z.string() });
export const SnippetCodeView = SnippetView.extend({ code: z.string() });
export const SnippetsView = z.object({ snippets: z.array(SnippetView) });
export const RemovedSnippetView = z.object({ name: z.string(), deleted: z.literal(true) });
