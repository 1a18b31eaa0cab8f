/** On every reply of the API: nothing is cached, and a browser takes no reply for something else than it is. */
export const API_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const;
