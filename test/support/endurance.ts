/**
 * How often something is done that proves more the more often it is done: seldom in `npm test`, and often with ENDURANCE=1
 * in the environment.
 */
export function howOften(seldom: number, often: number): number {
  return (process.env['ENDURANCE'] ?? '') === '' ? seldom : often;
}
