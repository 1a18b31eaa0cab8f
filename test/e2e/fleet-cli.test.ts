import { once } from 'node:events';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { workerLogFile } from '../../src/fleet/names.ts';
import { TaskArtifacts } from '../../src/fleet/logs/task-artifacts.ts';
import { WorkerLog } from '../../src/fleet/logs/worker-log.ts';
import { waitFor } from '../support/leftovers.ts';
import { HALF_DONE, PreparedFleet } from '../support/prepared-fleet.ts';

let prepared: PreparedFleet;
beforeEach(() => {
  prepared = new PreparedFleet();
});
afterEach(() => prepared[Symbol.asyncDispose]());

describe('status', () => {
  test('[FL-06] from any folder of the repository: what is done, what waits for a person', () => {
    prepared.state(HALF_DONE);
    const deep = join(prepared.root, 'src/deep');
    mkdirSync(deep, { recursive: true });
    const { status, stdout } = prepared.run(['status', '--tasks'], { cwd: deep });
    expect(status).toBe(0);
    expect(stdout).toContain('33 %  1 of 3 tasks');
    expect(stdout).toContain('SHOP-2 failed: tests\\x1b[2J failed');
    expect(stdout).toContain('hotcell fleet retry SHOP-2 --feature shop');
    expect(stdout).toContain('no orchestrator is running');
    expect(stdout).not.toContain('\u001b');
  });

  test('[FL-06] --json is what stands in the state, and says who works on it', async () => {
    prepared.state(HALF_DONE);
    const { pid } = await prepared.hold();
    const { status, stdout } = prepared.run(['status', '--json']);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      feature: 'shop',
      current_level: 0,
      paused: false,
      error: null,
      tasks: { 'SHOP-1': { status: 'complete' } },
      workers: { 0: { status: 'running' } },
      levels: { 1: { status: 'running' } },
      events: [],
      metrics: null,
      run_state: 'running',
      orchestrator: { pid },
      progress: { total: 3, complete: 1, failed: 1 },
    });
  });

  test('[FL-06] --watch without a terminal tells changes line by line, and ends with the run', async () => {
    const store = prepared.state(HALF_DONE);
    const holder = await prepared.hold();
    const { child, text } = prepared.watch(['status', '--watch', '--interval', '0.1']);
    await waitFor('the first look', () => text().includes('1 of 3 tasks'));
    store.update((now) => Object.assign(now.tasks['SHOP-3'] ?? {}, { status: 'verifying' }));
    await waitFor('the change', () => /^\d\d:\d\d:\d\d SHOP-3: verifying \(worker 0\)$/m.test(text()));
    expect(text().match(/SHOP-3: verifying/g)).toHaveLength(1);
    holder.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number];
    expect(code).toBe(1);
    expect(text()).toContain('the fleet is failed');
  });

  test('[FL-06] --watch --json prints an object a line, and Ctrl-C ends it with 130', async () => {
    const store = prepared.state(HALF_DONE);
    const { child, text } = prepared.watch(['status', '-w', '--json', '--interval', '0.1']);
    await waitFor('the first look', () => text().endsWith('\n'));
    store.update((now) => (now.paused = true));
    await waitFor('the change', () => text().trim().split('\n').length === 2);
    const seen = text()
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { paused: boolean }).paused);
    expect(seen).toEqual([false, true]);
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([130, null]);
  });

  test('[FL-06] --watch waits for the state and for somebody who leads, and says so once', async () => {
    const { child, text, notes } = prepared.watch(['status', '--watch', '-f', 'shop', '--interval', '0.1']);
    await waitFor('the note', () => notes() === 'fleet: waits for a run of shop to begin\n');
    prepared.state(HALF_DONE);
    await waitFor('the first look', () => text().includes('1 of 3 tasks'));
    const holder = await prepared.hold();
    await waitFor('the beginning', () => /^\d\d:\d\d:\d\d the fleet is running$/m.test(text()));
    holder.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([1, null]);
    expect(notes()).toBe('fleet: waits for a run of shop to begin\n');
  });

  test('[FL-06] without a state, and outside of a repository, it says what to do', () => {
    expect(prepared.run(['status'])).toMatchObject({ status: 1, stdout: '' });
    expect(prepared.run(['status', '-f', 'shop']).stderr).toContain('hotcell fleet run --feature shop');
    const elsewhere = mkdtempSync(join(tmpdir(), 'hotcell-nowhere-'));
    try {
      expect(prepared.run(['status'], { cwd: elsewhere })).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('in no git repository') as unknown,
      });
    } finally {
      rmSync(elsewhere, { recursive: true });
    }
  });

  test('[FL-15] the variable names the feature, a flag wins over it', () => {
    prepared.state(HALF_DONE);
    prepared.state({}, 'blog');
    const env = { MAHABHARATHA_FEATURE: 'shop' };
    expect(prepared.run(['status'], { env }).stdout).toMatch(/^shop /);
    expect(prepared.run(['status', '-f', 'blog'], { env }).stdout).toMatch(/^blog /);
    expect(prepared.run(['status', '-f', '../x']).status).toBe(2);
  });
});

describe('logs', () => {
  function writeLogs(): void {
    const times = [1, 2, 3, 4].map((second) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)));
    const [one, two, three, four] = times as [Date, Date, Date, Date];
    new WorkerLog(prepared.paths(), 0, { now: () => one }).info('claimed', {
      task_id: 'A',
      phase: 'claim',
    });
    new WorkerLog(prepared.paths(), 1, { now: () => two }).info('claimed too', {
      task_id: 'B',
      phase: 'claim',
    });
    new WorkerLog(prepared.paths(), 0, { now: () => three }).error('bad\u001b]0;x\u0007\nline', {
      task_id: 'A',
      phase: 'verify',
      event: 'verification_failed',
    });
    new WorkerLog(prepared.paths('blog'), 1, { now: () => four }).info('of another feature');
  }

  test('[FL-13] all workers merged by time, one worker, filters, JSON', () => {
    prepared.state(HALF_DONE);
    writeLogs();
    expect(prepared.run(['logs'])).toMatchObject({
      status: 0,
      stdout: [
        '00:00:01 worker 0  info  A claim claimed',
        '00:00:02 worker 1  info  B claim claimed too',
        '00:00:03 worker 0  error A verify bad\\x1b]0;x\\x07\\nline\n',
      ].join('\n'),
    });
    expect(prepared.run(['logs', '1']).stdout).toContain('claimed too');
    expect(prepared.run(['logs', '1']).stdout).not.toContain('worker 0');
    expect(prepared.run(['logs', '--level', 'error', '--tail', '1']).stdout).toContain('verify');
    const json = prepared
      .run(['logs', '--task', 'A', '--json', '--until', '2026-01-01T00:00:02Z'])
      .stdout.trim();
    expect(JSON.parse(json)).toMatchObject({ worker_id: 0, feature: 'shop', message: 'claimed' });
    expect(prepared.run(['logs', '--since', 'soon'])).toMatchObject({ status: 2 });
    const none = prepared.run(['logs', '--search', 'no such text']);
    expect(none).toMatchObject({ status: 0, stdout: '' });
    expect(none.stderr).toContain('no such lines');
  });

  test('[FL-13] --follow goes on, also with workers that come later', async () => {
    prepared.state(HALF_DONE);
    writeLogs();
    const { child, text } = prepared.watch(['logs', '--follow', '--tail', '1']);
    await waitFor('the tail', () => text().includes('verify'));
    new WorkerLog(prepared.paths(), 7).warn('late to the party');
    await waitFor('the new worker', () => text().includes('worker 7  warn  late to the party'));
    appendFileSync(workerLogFile(prepared.paths(), 7), 'not JSON\n');
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([130, null]);
  });

  test('[FL-13] --artifacts prints what is kept of a task', () => {
    prepared.state(HALF_DONE);
    const artifacts = new TaskArtifacts(prepared.paths(), 'SHOP-2');
    const output = artifacts.openOutput('agent', 'attempt 1');
    output.write(Buffer.from('I try\u001b[2J\n'));
    output.close();
    artifacts.writeDiff(Buffer.from('+one\n'));
    const { status, stdout } = prepared.run(['logs', '--task', 'SHOP-2', '--artifacts']);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /claude_output\.txt <==\n==== attempt 1 ====\nI try\\x1b\[2J\n\n==> .*git_diff\.patch <==\n\+one\n/,
    );
    expect(prepared.run(['logs', '--artifacts']).status).toBe(2);
    expect(prepared.run(['logs', '--task', '../..', '--artifacts'])).toMatchObject({ status: 1, stdout: '' });
  });
});

test.each(['status', 'logs', 'stop', 'retry', 'cleanup'])(
  '[FL-15] %s explains itself with examples',
  (name) => {
    const { status, stdout } = prepared.run([name, '--help']);
    expect(status).toBe(0);
    expect(stdout).toContain(`  hotcell fleet ${name}`);
  },
);
