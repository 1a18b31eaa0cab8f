import { fileURLToPath } from 'node:url';

const CACHE = new URL('../../node_modules/.cache/', import.meta.url);

export const SOURCE = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
/** Where `bundle-command` puts our command: from its sources a start takes half as much work again, and there are hundreds. */
export const COMMAND_FOLDER = fileURLToPath(new URL('hotcell-command', CACHE));
export const MAIN = fileURLToPath(new URL('hotcell-command/main.mjs', CACHE));

/** For whoever starts it with an environment of its own: compiled code is kept between starts, as the launcher does it. */
export const COMPILE_CACHE: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('hotcell', CACHE)),
};
