/** What an editor does when somebody presses Run: `node run-snippet.ts [ADDRESS]`. Needs a running server. */
import assert from 'node:assert/strict';

interface Result {
  readonly stdout: string;
  readonly stderr: string;
  readonly exit_code: number;
  readonly execution_time_ms: number;
}

async function executeCode(server: string, language: string, code: string): Promise<Result> {
  const response = await fetch(`${server}/execute/${language}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  // Whatever the snippet does wrong is a result; another status is about the request or the server.
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const result: unknown = await response.json();
  if (!isResult(result)) throw new Error('this is not a Hotcell server');
  return result;
}

function isResult(value: unknown): value is Result {
  return typeof value === 'object' && value !== null && 'stdout' in value && 'exit_code' in value;
}

const server = process.argv[2] ?? 'http://127.0.0.1:8000';

const sum = await executeCode(server, 'python', 'numbers = [1, 2, 3, 4, 5]\nprint(f"Sum: {sum(numbers)}")');
process.stdout.write(sum.stdout);
assert.deepEqual([sum.stdout, sum.stderr, sum.exit_code], ['Sum: 15\n', '', 0]);
assert.ok(sum.execution_time_ms > 0);

const mistake = await executeCode(server, 'ruby', 'puts undefined_name');
assert.match(mistake.stderr, /undefined_name/);
assert.equal(mistake.exit_code, 1);
