import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HALF_DONE, PreparedFleet } from '../support/prepared-fleet.ts';

let prepared: PreparedFleet;
beforeEach(() => {
  prepared = new PreparedFleet();
});
afterEach(() => prepared[Symbol.asyncDispose]());

describe('retry', () => {
  test('[FL-15] makes tasks ready again and says how to go on', () => {
    const store = prepared.state(HALF_DONE);
    const { status, stdout, stderr } = prepared.run(['retry', 'SHOP-2']);
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'SHOP-2 can be taken again\n' });
    expect(stderr).toContain('hotcell fleet resume --feature shop');
    expect(store.read()?.tasks['SHOP-2']).toMatchObject({ status: 'pending', retry_count: 3, error: null });
    expect(prepared.run(['retry', '--all-failed', '--json'])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('"retried": []') as unknown,
    });
  });

  test('[FL-15] a living fleet needs no resume', async () => {
    prepared.state(HALF_DONE);
    await prepared.hold();
    expect(prepared.run(['retry', '--all-failed', '--reset'])).toEqual({
      status: 0,
      stdout: 'SHOP-2 can be taken again\n',
      stderr: '',
    });
  });

  test('[FL-15] what cannot be retried is said, with near names', () => {
    prepared.state(HALF_DONE);
    const unknown = prepared.run(['retry', 'SHPO-2']);
    expect(unknown.status).toBe(1);
    expect(unknown.stderr).toMatch(/has no task "SHPO-2"; did you mean SHOP-2\?/);
    expect(prepared.run(['retry', 'SHOP-1'])).toMatchObject({ status: 2 });
    expect(prepared.run(['retry'])).toMatchObject({ status: 2 });
    expect(prepared.run(['retry', 'SHOP-2', '--all-failed'])).toMatchObject({ status: 2 });
  });
});

describe('stop', () => {
  test('[FL-15] ends the fleet that works on the feature', async () => {
    const store = prepared.state(HALF_DONE);
    const { pid } = await prepared.hold();
    const { status, stdout } = prepared.run(['stop']);
    expect(status).toBe(0);
    expect(stdout).toContain(`stopped shop: process ${pid} has ended`);
    expect(stdout).toContain('to be taken again: SHOP-3');
    expect(store.read()).toMatchObject({
      tasks: { 'SHOP-3': { status: 'pending' } },
      workers: { 0: { status: 'stopped' } },
    });
    expect(prepared.run(['stop']).stdout).toContain('nobody was working on shop');
  });

  test('[FL-15] one worker needs a living fleet', () => {
    prepared.state(HALF_DONE);
    const { status, stderr } = prepared.run(['stop', '--worker', '0']);
    expect(status).toBe(1);
    expect(stderr).toContain('no orchestrator works on feature shop');
    expect(prepared.run(['stop', '--worker', '0', '--force']).status).toBe(2);
  });

  test('[FL-15] one worker of a living fleet is asked to stop by the state', async () => {
    const store = prepared.state(HALF_DONE);
    await prepared.hold();
    const { status, stderr } = prepared.run(['stop', '-w', '0', '--timeout', '0.2']);
    expect({ status, stderr }).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('was told to stop') as unknown,
    });
    expect(store.read()?.workers['0']?.stop_requested).toBe(true);
  });
});

describe('cleanup', () => {
  function layOut(): void {
    const base = prepared.git('rev-parse', 'HEAD');
    prepared.branch('mahabharatha/shop/worker-0', base, 'a');
    prepared.git('branch', 'mahabharatha/shop/staging', base);
    prepared.state({ ...HALF_DONE, target_branch: 'main' });
    prepared.git(
      'worktree',
      'add',
      '--quiet',
      '.mahabharatha-worktrees/shop/worker-0',
      'mahabharatha/shop/worker-0',
    );
    prepared.write('.gsd/specs/shop/requirements.md', 'keep me\n');
  }

  test('[FL-15] lists, then removes; unmerged branches and specs stay', () => {
    layOut();
    const dry = prepared.run(['cleanup', '--dry-run']);
    expect(dry.status).toBe(0);
    expect(dry.stdout).toContain('- branch mahabharatha/shop/staging');
    expect(dry.stdout).toContain('branch mahabharatha/shop/worker-0 stays');
    expect(existsSync(prepared.paths().state)).toBe(true);

    const done = prepared.run(['cleanup', '--json', '--yes']);
    expect(done.status).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({ done: true, features: [{ feature: 'shop' }] });
    expect(existsSync(prepared.paths().state)).toBe(false);
    expect(existsSync(join(prepared.root, '.mahabharatha-worktrees'))).toBe(false);
    expect(prepared.git('branch', '--list', 'mahabharatha/*').trim()).toBe('mahabharatha/shop/worker-0');
    expect(readFileSync(join(prepared.paths().specs, 'requirements.md'), 'utf8')).toBe('keep me\n');
    expect(prepared.run(['cleanup', '-f', 'shop', '--force', '--yes']).status).toBe(0);
    expect(prepared.git('branch', '--list', 'mahabharatha/*')).toBe('');
    expect(prepared.run(['cleanup', '--all']).stderr).toContain('nothing to clean up');
  });

  test.each([{ args: [] }, { args: ['--json'] }, { args: ['--all', '--force'] }])(
    '[FL-15] without a terminal and without --yes it changes nothing ($args)',
    ({ args }) => {
      layOut();
      const view = (): unknown => [
        prepared.git('for-each-ref'),
        prepared.git('worktree', 'list'),
        readFileSync(prepared.paths().state, 'utf8'),
      ];
      const before = view();
      const { status, stdout, stderr } = prepared.run(['cleanup', ...args]);
      expect({ status, stdout }).toMatchObject({ status: 2 });
      expect(stdout + stderr).toContain('there is no terminal to ask on; nothing was done');
      expect(stdout + stderr).toContain('Give --yes');
      expect(view()).toEqual(before);
    },
  );

  test('[FL-15] is refused while somebody works on the feature', async () => {
    layOut();
    const { pid } = await prepared.hold();
    const { status, stderr } = prepared.run(['cleanup', '--yes']);
    expect(status).toBe(1);
    expect(stderr).toContain(`process ${pid}`);
    expect(existsSync(prepared.paths().state)).toBe(true);
  });
});
