import { expect, test } from 'vitest';
import { describeEvent } from './describe-event.ts';

test.each([
  ['gate_pass', '✓ check lint passed (1m 05s)'],
  ['gate_fail', '✗ check lint did not pass (1m 05s)'],
  ['gate_timeout', '✗ check lint was ended after its time (1m 05s)'],
  ['gate_error', '✗ check lint could not be run (1m 05s)'],
  ['gate_skip', '- check lint was skipped'],
])('[FL-05] every end of a check is a line: %s', (event, line) => {
  const data = { level: 1, gate: 'lint', required: true, duration_ms: 65_000 };
  expect(describeEvent(event, data, false)).toBe(line);
  const excuse = event === 'gate_pass' ? '' : ', which is not required';
  expect(describeEvent(event, { ...data, required: false }, false)).toBe(`${line}${excuse}`);
});
