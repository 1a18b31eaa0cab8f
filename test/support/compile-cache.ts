import { fileURLToPath } from 'node:url';

/**
 * For whoever starts our command with an environment of its own: compiled code is kept between starts, as the launcher does
 * it. Hundreds of starts would otherwise be a good part of all the work.
 */
export const COMPILE_CACHE: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/hotcell', import.meta.url)),
};
