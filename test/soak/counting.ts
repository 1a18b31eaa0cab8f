import assert from 'node:assert/strict';

/** Numbered lines until there is a file, with a marker by which it can be found among all processes. */
export function countUntilStopped(marker: string): string {
  return `perl -e '$| = 1; for ($n = 0; !-e "/tmp/stop-$ARGV[0]"; $n++) { print "$n\\n"; select undef, undef, undef, 0.05 } print "end $n\\n"' ${marker}`;
}

/** Numbered lines, so many of them. */
export function countTo(lines: number, marker: string): string {
  return `perl -e '$| = 1; for ($n = 0; $n < ${lines}; $n++) { print "$n\\n"; select undef, undef, undef, 0.02 } print "end $n\\n"' ${marker}`;
}

/** Fails unless every line is there once and in order. */
export function expectCounted(output: string): void {
  const lines = output.trimEnd().split('\n');
  const last = lines.pop();
  const wrong = lines.findIndex((line, index) => line !== String(index));
  assert.equal(wrong, -1, `line ${wrong} is ${lines[wrong]}`);
  assert.equal(last, `end ${lines.length}`);
}
