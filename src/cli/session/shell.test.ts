import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ScriptedServer } from '../../http/scripted-server.double.ts';
import { SESSION } from '../../http/sessions/scripted-sessions.double.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** The real command in a real terminal, which `script` makes. */
function inTerminal(port: number, args: string) {
  const line = `stty rows 33 cols 111; ${process.execPath} ${MAIN} session shell ${SESSION} ${args}; echo "code=$?"; stty -a`;
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    env: { HOTCELL_PORT: String(port), PATH: process.env['PATH'] ?? '', SHELL: '/bin/bash' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (shown += part));
  const closed = new Promise((resolve) => child.once('close', resolve));
  return { type: (text: string) => child.stdin.write(text), shown: () => shown, closed };
}

const PATIENT = { timeout: 20_000 };

test('[RS-20] a shell: every key goes there, its size is ours, and leaving it leaves it running', async () => {
  await using server = await ScriptedServer.start();
  const { session } = server.sessions;
  const terminal = inTerminal(server.port, '');
  await expect.poll(() => session.commands.get('exec_1')?.followers, PATIENT).toBe(1);
  const exec = session.findExec('exec_1');
  expect(session.calls).toEqual([['openTerminal', { size: { rows: 33, columns: 111 }, env: {} }]]);
  exec.print('stdout', 'prompt$ ');
  await expect.poll(terminal.shown, PATIENT).toContain('prompt$ ');
  // Ctrl-C, Ctrl-Z and Ctrl-D are nothing special here.
  terminal.type('ls\u0003\u001a\u0004\r\u001d\u001d');
  const typed = (): string => exec.calls.flatMap(([name, text]) => (name === 'write' ? [text] : [])).join('');
  await expect.poll(typed, PATIENT).toBe('ls\u0003\u001a\u0004\r\u001d');
  terminal.type('\u001dd');
  await terminal.closed;
  expect(terminal.shown()).toContain(`hotcell session shell ${SESSION} --attach exec_1`);
  expect(terminal.shown()).toContain('code=0');
  // The terminal is as it was.
  expect(terminal.shown()).toMatch(/[^-]icanon[^]*[^-]opost|[^-]opost[^]*[^-]icanon/);
  expect(exec.describe().state).toBe('running');
  expect(exec.calls.map(([name]) => name)).not.toContain('kill');
});

test('[RS-20] coming back to a shell shows what it said meanwhile; its end is ours', async () => {
  await using server = await ScriptedServer.start();
  const exec = server.sessions.session.addExec({ terminal: true });
  exec.print('stdout', 'said before\r\n');
  const terminal = inTerminal(server.port, '--attach exec_1');
  await expect.poll(terminal.shown, PATIENT).toContain('said before');
  expect(exec.calls).toContainEqual(['resize', { rows: 33, columns: 111 }]);
  exec.print('stdout', 'line\nfeed');
  exec.end({ exitCode: 7, ok: false });
  await terminal.closed;
  expect(terminal.shown()).toContain('code=7');
  // A line feed alone goes down only; it does not become a new line.
  expect(terminal.shown()).toContain('line\nfeed');
});
