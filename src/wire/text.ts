import * as z from 'zod';
import { relativePathProblem } from '../core/job.ts';

const wellFormed = (text: string): boolean => text.isWellFormed();
const withoutNul = (text: string): boolean => !text.includes('\0');

/** Text that may hold any character, NUL included. */
export const Text = z.string().refine(wellFormed, 'must be well-formed Unicode (it has a lone surrogate)');
/** Text that ends up as a file of code, an argument or a variable, where NUL cannot stand. */
export const PlainText = Text.refine(withoutNul, 'must not contain NUL characters');

/** A path below some folder: nothing that leaves it, by the looks of it. Links are the kernel's business. */
export const RelativePath = PlainText.superRefine((path, context) => {
  const problem = relativePathProblem(path);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
});

export const Variables = z.record(
  z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/, 'a variable name has letters, digits and _')
    .refine((name) => name !== '__proto__', 'is not a variable name'),
  PlainText,
);

export const Encoding = z.enum(['utf8', 'base64']);

/** For content with an `encoding` beside it. */
export function fitsEncoding(file: {
  readonly content: string;
  readonly encoding: 'utf8' | 'base64';
}): boolean {
  return file.encoding !== 'base64' || isBase64(file.content);
}

export const ENCODING_PROBLEM = { path: ['content'], message: 'must be base64 when encoding is base64' };

export function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}
