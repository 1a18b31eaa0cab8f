import { spawnSync } from 'node:child_process';
import { afterAll, expect } from 'vitest';
import { AppleDouble, whyNoDouble } from '../support/apple-double/apple-double.ts';
import { testThatNeeds } from '../support/needs.ts';
import { TestServer } from '../support/server.ts';
import { MAIN } from '../support/command.ts';

const test = testThatNeeds(whyNoDouble());
const double = new AppleDouble({
  registry: ['python:3.10-slim', 'python:3.12-slim', 'debian:12-slim', 'oven/bun:1-slim'],
});
afterAll(() => double[Symbol.asyncDispose]());

const ARGS = [
  '--driver',
  'apple',
  '--set',
  `apple.cli=${double.cli}`,
  '--set',
  'languages={"ruby": false, "javascript": false, "typescript": false, "bash": false}',
  '--set',
  'pool.size=1',
];

function hotcell(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    encoding: 'utf8',
    env: {},
  });
  return { status, stdout, stderr };
}

test('[MC-03, MC-06, MC-13] a server on Apple’s container: runs, time limits, receipts, and an end without remains', async () => {
  const server = await TestServer.start({ args: ARGS });
  try {
    const { body } = await server.execute('python', { code: 'print(6 * 7)' });
    expect(body).toMatchObject({
      stdout: '42\n',
      exit_code: 0,
      receipt: { isolation: { driver: 'apple', runtime: 'container 1.2.2' } },
    });
    const late = await server.execute('python', { code: 'while True: pass', timeout_ms: 1000 });
    expect(late.body).toMatchObject({ exit_code: 124 });
    const again = await server.execute('python', { code: 'print("still here")' });
    expect(again.body).toMatchObject({ stdout: 'still here\n' });
    const sessions = await fetch(`${server.url}/v1/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"project_id":"p"}',
    });
    expect(sessions.status).toBe(503);
    expect(await sessions.text()).toContain('cells of the apple driver end with the server');
  } finally {
    expect(await server.stop()).toBe(0);
    await server[Symbol.asyncDispose]();
  }
  expect(double.ids()).toEqual([]);
});

test('[MC-05] hotcell build makes the base image by hand, and images and doctor know it', () => {
  const settings = ['--driver', 'apple', '--set', `apple.cli=${double.cli}`];
  const built = hotcell('build', 'bun-runner-base', '--json', ...settings);
  expect({ status: built.status, stderr: built.status === 0 ? '' : built.stderr }).toEqual({
    status: 0,
    stderr: '',
  });
  expect(JSON.parse(built.stdout)).toMatchObject([
    {
      name: 'bun-runner-base',
      image: 'bun-runner-base:latest',
      base: 'oven/bun:1-slim',
      platform: 'linux/arm64',
    },
  ]);
  expect(double.run('image', 'inspect', 'bun-runner-base').code).toBe(0);
  const doctor = JSON.parse(hotcell('doctor', '--json', ...settings).stdout) as {
    drivers: { name: string; chosen: boolean; probe: { ok: boolean } }[];
  };
  expect(doctor.drivers.find(({ name }) => name === 'apple')).toMatchObject({
    chosen: true,
    probe: { ok: true },
  });
});

test('[MC-13, WB-02] with the services down, doctor and the start say how to start them', () => {
  double.control({ services: 'unregistered' });
  const { status, stdout, stderr } = hotcell('doctor', ...ARGS);
  expect(stdout + stderr).toContain('container system start');
  expect(status).not.toBe(0);
  const start = hotcell('up', '--port', '0', ...ARGS);
  expect(start.status).not.toBe(0);
  expect(start.stderr).toContain('container system start');
  double.control({ services: 'running' });
});
