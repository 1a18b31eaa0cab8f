export function toIsoTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
