import type { CallToolResult } from '@modelcontextprotocol/server';

/** One red point. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
/** No sound at all, as long as a header. */
export const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

export function say(text: string): CallToolResult {
  return { content: [{ type: 'text', text }] };
}
