import * as z from 'zod';

const Cells = z.int().min(1).max(1000);

/** A text message from a viewer of a terminal; binary messages are what somebody types. */
export const TerminalControl = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('resize'), rows: Cells, cols: Cells }),
  z.strictObject({ type: z.literal('eof') }),
  z.strictObject({ type: z.literal('kill') }),
]);
export type TerminalControl = z.infer<typeof TerminalControl>;

/** The subprotocol of `GET …/terminal`. */
export const TERMINAL_PROTOCOL = 'hotcell.terminal';
/** Before the key in base64url, as one more subprotocol: a browser can send no Authorization header with a WebSocket. */
export const KEY_PROTOCOL_PREFIX = 'hotcell.bearer.';
