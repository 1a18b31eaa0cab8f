import { InvalidArgumentError } from 'commander';

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time as ISO 8601, or as what has passed since: `90s`, `10m`, `2h`, `1d`. */
export function toTime(text: string): Date {
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(Date.now() - Number(count) * (UNITS[unit] ?? 0));
  const time = new Date(text);
  if (!/^\d{4}-/.test(text) || Number.isNaN(time.getTime()))
    throw new InvalidArgumentError('Write it as 2026-01-31T12:00:00Z, or as 10m, 2h, 1d for times ago.');
  return time;
}

/** Seconds, as milliseconds. */
export function toMs(text: string): number {
  const seconds = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || seconds > 1_000_000)
    throw new InvalidArgumentError('Write a number of seconds.');
  return seconds * 1000;
}

/** A whole number, or `all`. */
export function toCount(text: string): number {
  if (text === 'all') return Infinity;
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Write a whole number, or all.');
  return Number(text);
}
