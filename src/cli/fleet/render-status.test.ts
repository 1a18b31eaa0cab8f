import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { FOREIGN_STATE } from '../../../test/support/foreign-fleet-state.ts';
import { FleetState } from '../../fleet/fleet-state.ts';
import { toFinalReport } from '../../fleet/status/final-report.ts';
import { toStatusView, type StatusView } from '../../fleet/status/status-view.ts';
import { TaskGraph } from '../../fleet/task-graph.ts';
import { Terminal } from '../terminal.ts';
import { toDurationText } from './duration-text.ts';
import { LiveScreen } from './live-screen.ts';
import { toCount, toMs, toTime } from './option-values.ts';
import { renderLogLine } from './render-log.ts';
import { renderReport } from './render-report.ts';
import { renderStatus, type StatusSections } from './render-status.ts';
import { describeChanges } from './status-changes.ts';

const NOW = new Date('2026-01-01T01:00:00.000Z');
const EVIL = 'x\u001b[2J\u202e\r\ny';
// oxlint-disable-next-line no-control-regex -- these are what must not be there
const COMMANDS = /[\u001b\r\u202e]/;
const SECTIONS: StatusSections = { tasks: false, workers: false, commits: false, level: undefined };

/** A terminal whose text can be read; `colours` as if it were one. */
function record(size?: { rows: number }): {
  terminal: Terminal;
  text: () => string;
  resize: (rows: number) => void;
} {
  let text = '';
  const stream = Object.assign(
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        text += chunk.toString();
        done();
      },
    }),
    { isTTY: size !== undefined, rows: size?.rows ?? 0, columns: 80 },
  );
  const asStream = stream as unknown as NodeJS.WriteStream;
  return {
    terminal: new Terminal({ stdout: asStream, stderr: asStream }),
    text: () => text,
    resize: (rows) => {
      text = '';
      stream.rows = rows;
      stream.emit('resize');
    },
  };
}

function viewOf(change: object, isAlive = true): StatusView {
  const state = FleetState.parse({
    feature: 'shop',
    started_at: '2026-01-01T00:30:00.000Z',
    mode: 'container',
    current_level: 1,
    tasks: {
      A: {
        status: 'complete',
        level: 1,
        worker_id: 0,
        duration_ms: 65_000,
        commit: 'c0ffee00c0ffee',
        changed_files: ['a'],
      },
      B: { status: 'in_progress', level: 1, worker_id: 1, started_at: '2026-01-01T00:59:00.000Z' },
      C: { status: 'pending', level: 2 },
    },
    workers: {
      0: { worker_id: 0, status: 'idle', tasks_completed: 1 },
      1: { worker_id: 1, status: 'running', current_task: 'B', container_name: 'mahabharatha-worker-1' },
    },
    levels: { 1: { status: 'running' }, 2: { status: 'pending' } },
    ...change,
  });
  const graph = TaskGraph.parse({
    feature: 'shop',
    tasks: ['A', 'B', 'C'].map((id) => ({ id, title: `Title of ${id}`, level: id === 'C' ? 2 : 1 })),
  });
  const orchestrator = isAlive ? { pid: 4711, started_at: NOW.toISOString() } : undefined;
  return toStatusView({ state, graph, orchestrator, now: NOW });
}

const paint = record().terminal.paint;
const render = (view: StatusView, sections: Partial<StatusSections> = {}): string =>
  renderStatus(view, { ...SECTIONS, ...sections }, paint).join('\n');

describe('status', () => {
  test('[FL-06] shows how far it is, levels and workers', () => {
    expect(render(viewOf({}))).toBe(
      [
        'shop  running, mode container, process 4711, 30m 00s in all, about 1m 10s left',
        '████████░░░░░░░░░░░░░░░░ 33 %  1 of 3 tasks, 1 running, 1 waiting',
        '',
        '  LEVEL  NAME  STATUS   TASKS  MERGE  COMMIT',
        '  1            running  1/2',
        '  2            pending  0/1',
        '',
        '  WORKER  STATUS   TASK  SINCE   DONE  RESTARTS  CELL',
        '  0       idle                   1',
        '  1       running  B     1m 00s  0               mahabharatha-worker-1',
      ].join('\n'),
    );
  });

  test('[FL-06] what agents do and cost, where they say so', () => {
    const agent = { turns: 12, tool_calls: 3, input_tokens: 41_000, output_tokens: 900, cost_usd: 1.239 };
    const view = viewOf({
      tasks: {
        A: { status: 'complete', level: 1, agent },
        B: { status: 'in_progress', level: 1, worker_id: 1, agent },
      },
      workers: {
        1: { worker_id: 1, status: 'running', current_task: 'B', activity: 'Bash: npm\u001b[2J test' },
      },
    });
    const shown = render(view);
    expect(shown).toContain('$2.48, 84k tokens, 24 turns');
    expect(shown).toMatch(/CELL +DOES$/m);
    expect(shown).toMatch(/Bash: npm.+ test$/m);
    expect(shown).not.toContain('\u001b[2J');
    expect(render(view, { tasks: true })).toMatch(/^ {2}A .+ 12 +42k +\$1\.24 /m);
  });

  test('[FL-07] shows what bounds worktrees, whatever the state has of it', () => {
    expect(render(viewOf({ worktree_bytes: 10 * 1024 ** 3, worktree_bound: 'watched' }))).toMatch(
      /^shop .* left, worktrees up to 10\.7 GB, watched$/m,
    );
    expect(render(viewOf({ worktree_bytes: 5, worktree_bound: EVIL }))).not.toMatch(COMMANDS);
  });

  test('[FL-06] tasks, commits and one level on request', () => {
    const tasks = render(viewOf({}), { tasks: true, level: 1 });
    expect(tasks).toMatch(/^ {2}A {2,}1 {2,}complete {2,}0 {2,}1m 05s {2}Title of A$/m);
    expect(tasks).not.toContain('Title of C');
    expect(tasks).not.toContain('WORKER  STATUS');
    expect(render(viewOf({}), { commits: true })).toMatch(
      /^ {2}c0ffee00c0ffee {2}A {2,}0 {2,}1 {2,}Title of A$/m,
    );
  });

  test('[FL-06] what cells and files say cannot command the terminal, nor make lines of its own', () => {
    const text = render(
      viewOf({
        error: EVIL,
        mode: EVIL,
        tasks: { [EVIL]: { status: 'failed', error: EVIL }, A: { status: 'complete', commit: EVIL } },
        workers: {
          0: { worker_id: 0, status: 'crashed', error: EVIL, container_name: EVIL, current_task: EVIL },
        },
        levels: {
          1: { status: 'conflict', merge_details: { branch: EVIL, files: [EVIL], instructions: [EVIL] } },
        },
      }),
      { tasks: true, workers: true, commits: true },
    );
    expect(text).not.toMatch(COMMANDS);
    expect(text).not.toMatch(/^y/m);
    expect(text).toContain('x\\x1b[2J');
  });

  test('[FL-06] a state that another program wrote', () => {
    const state = FleetState.parse(FOREIGN_STATE);
    const view = toStatusView({ state, graph: undefined, orchestrator: undefined, now: NOW });
    expect(render(view, { tasks: true })).toContain('SHOP-L1-002');
  });
});

test('[FL-06] without a terminal only what changed is told, a line each', () => {
  const before = viewOf({});
  expect(describeChanges(before, viewOf({}))).toEqual([]);
  const now = viewOf(
    {
      tasks: {
        A: { status: 'complete', level: 1, worker_id: 0, duration_ms: 65_000 },
        B: { status: 'failed', level: 1, worker_id: 1, retry_count: 2, error: EVIL },
        C: { status: 'pending', level: 2 },
      },
      levels: { 1: { status: 'merging', merge_status: 'collecting' } },
      workers: { 0: { worker_id: 0, status: 'idle' }, 1: { worker_id: 1, status: 'stopped' } },
    },
    false,
  );
  expect(describeChanges(before, now)).toEqual([
    'the fleet is failed',
    'level 1: merging, merge collecting, 1 of 2 tasks',
    'B: failed (worker 1, attempt 2)',
    'worker 0: gone',
    'worker 1: stopped',
    'B failed: x\\x1b[2J\\x202e y',
    '  → hotcell fleet logs --feature shop --task B --artifacts',
    '  → hotcell fleet retry B --feature shop',
    'no orchestrator is running',
    '  → hotcell fleet resume --feature shop',
  ]);
});

test('[FL-06] the live screen is drawn in place, cut to the height, again after a resize, and given back', () => {
  const { terminal, text, resize } = record({ rows: 3 });
  {
    using screen = new LiveScreen(terminal);
    screen.show(['one', 'two', 'three', 'four']);
    expect(text()).toContain('\u001b[?1049h');
    expect(text()).toContain('\u001b[Hone\u001b[K\r\ntwo\u001b[K\r\n… 2 more lines\u001b[K\u001b[J');
    resize(10);
    expect(text()).toBe('\u001b[Hone\u001b[K\r\ntwo\u001b[K\r\nthree\u001b[K\r\nfour\u001b[K\u001b[J');
  }
  expect(text().endsWith('\u001b[?1049l')).toBe(true);
  resize(5);
  expect(text()).toBe('');
});

test('[FL-13] a line of a log stays one line and commands nothing', () => {
  const line = {
    ts: '2026-01-01T12:00:03.5Z',
    level: 'error',
    worker_id: 2,
    message: `a${EVIL}`,
    task_id: 'A',
    phase: 'verify',
    data: { attempt: 2, error: 'no\nway' },
    duration_ms: 5,
  };
  const { terminal } = record();
  expect(renderLogLine(line, terminal)).toBe(
    '12:00:03 worker 2  error A verify ax\\x1b[2J\\x202e\\ny attempt=2 error=no way (5 ms)',
  );
  const evil = renderLogLine(
    {
      ts: EVIL,
      level: EVIL,
      worker_id: EVIL,
      message: '',
      task_id: EVIL,
      data: { [EVIL]: EVIL, all: [EVIL] },
    },
    terminal,
  );
  expect(evil).not.toMatch(COMMANDS);
  expect(evil).not.toContain('\n');
});

test('[FL-06] the final report has a line for every task, and totals', () => {
  const state = FleetState.parse({
    feature: 'shop',
    started_at: '2026-01-01T00:00:00.000Z',
    finished_at: '2026-01-01T00:10:00.000Z',
    tasks: {
      A: {
        status: 'complete',
        worker_id: 1,
        retry_count: 2,
        duration_ms: 61_000,
        commit: 'c0ffee00c0ffee',
        changed_files: ['a', 'b'],
        foreign_files: ['b'],
      },
    },
    levels: { 1: { status: 'complete' } },
  });
  const { terminal, text } = record();
  renderReport(terminal, toFinalReport(state, undefined, NOW));
  expect(text()).toContain('A     complete  1       3         1m 01s  2!     c0ffee00c0');
  expect(text()).toContain(
    '1 of 1 tasks complete, 10m 00s in all, 1m 01s of work, 2 files changed, 3 attempts\n',
  );
  expect(text()).toContain('A changed files that it does not own: b');
});

describe('words and numbers', () => {
  test.each([
    [0, '0s'],
    [59_499, '59s'],
    [61_000, '1m 01s'],
    [3_660_000, '1h 01m'],
  ])('[FL-06] %i ms are %s', (ms, text) => {
    expect(toDurationText(ms)).toBe(text);
  });

  test('[FL-13] times are absolute or ago; nonsense is refused', () => {
    expect(toTime('2026-01-31T12:00:00Z').getTime()).toBe(Date.UTC(2026, 0, 31, 12));
    expect(Math.abs(Date.now() - 600_000 - toTime('10m').getTime())).toBeLessThan(1000);
    for (const text of ['yesterday', '5', '10x', '']) expect(() => toTime(text)).toThrow('Write it');
    expect(toMs('0.5')).toBe(500);
    expect(() => toMs('-1')).toThrow('seconds');
    expect(toCount('all')).toBe(Infinity);
    expect(() => toCount('-3')).toThrow('whole');
  });
});
