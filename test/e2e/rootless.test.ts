import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { toCgroupLayout } from '../../src/drivers/oci/cgroup-layout.ts';
import { findTraces } from '../support/leftovers.ts';
import { countMarked, makeMarker } from '../support/live-server.ts';
import { testThatNeeds } from '../support/needs.ts';
import { NOBODY, Nobody, whyNoNobody } from '../support/nobody.ts';

const SECRET = 'the secret of the caller';
const rootlessTest = testThatNeeds(whyNoNobody());

/** A part of cgroup v2 was handed to nobody, the user: the cgroup that we are in, or the one above. */
function isDelegated(): boolean {
  const layout = toCgroupLayout(readFileSync('/proc/self/mountinfo', 'utf8'));
  if (layout.version !== 2) return false;
  const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '/';
  return [own, dirname(own)].some((path) => statSync(join(layout.root, path)).uid === NOBODY);
}

/** Without root there is nobody to keep these: cgroups are root's, and the only id to map is the caller's. */
const MISSING = [...(isDelegated() ? [] : ['cpus', 'memoryBytes', 'processes']), 'identity'];

const nobody = new Nobody();
let server: Server | undefined;
beforeAll(async () => {
  writeFileSync(join(nobody.home, 'secret.txt'), SECRET, { mode: 0o644 });
  chownSync(join(nobody.home, 'secret.txt'), NOBODY, NOBODY);
  server = createServer();
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  server?.close();
  nobody[Symbol.dispose]();
});

function hotcellAsNobody(args: readonly string[], { place = '/', input = '' } = {}) {
  const [program, ...words] = nobody.command('src/cli/main.ts');
  return spawnSync(program, [...words, ...args], {
    encoding: 'utf8',
    input,
    env: nobody.env,
    cwd: place,
  });
}

function runAsNobody(code: string, ...args: string[]) {
  const { status, stdout, stderr } = hotcellAsNobody(['run', '-', '--language', 'bash', '--json', ...args], {
    input: code,
  });
  if (!stdout.startsWith('{')) throw new Error(`the command said: ${stderr}`);
  return { status, reply: JSON.parse(stdout) as Record<string, unknown> };
}

/** What a program says inside, with everything given up that cannot be had. */
function sayInside(code: string): string {
  const { reply } = runAsNobody(code, '--weaker', MISSING.join(','));
  expect(reply).toMatchObject({ exit_code: 0 });
  return (reply['stdout'] as { text: string }).text;
}

describe('without root', () => {
  rootlessTest('[SC-04] what nobody enforces is refused by name, and nothing runs', () => {
    const { status, reply } = runAsNobody('echo ran');
    expect(status).toBe(125);
    expect(reply).toEqual({
      code: 'POLICY_UNENFORCEABLE',
      detail: `nobody enforces: ${MISSING.join(', ')}`,
      hint: expect.stringContaining(`--weaker ${MISSING.join(',')}`) as unknown,
    });
    expect(readdirSync(nobody.state)).toEqual([]);
  });

  rootlessTest('[SC-04, FL-02] a fleet is refused in the same words, and has the flag that they name', () => {
    const place = join(nobody.home, 'repository');
    const graph = { feature: 'demo', tasks: [{ id: 'A', title: 'A', level: 1 }] };
    mkdirSync(join(place, '.gsd/specs/demo'), { recursive: true });
    writeFileSync(join(place, '.gsd/specs/demo/task-graph.json'), JSON.stringify(graph));
    const git = (...args: string[]): void => {
      const identity = ['-c', 'user.name=T', '-c', 'user.email=t@example.org'];
      expect(spawnSync('git', [...identity, ...args], { cwd: place }).status).toBe(0);
    };
    git('init', '--quiet');
    git('add', '-A');
    git('commit', '--quiet', '-m', 'Begin');
    mkdirSync(join(place, '.mahabharatha'));
    writeFileSync(join(place, '.mahabharatha/config.yaml'), 'agent: { command: node }\n');
    expect(spawnSync('chown', ['-R', String(NOBODY), place]).status).toBe(0);
    const ask = (...args: string[]) =>
      hotcellAsNobody(
        ['fleet', 'run', '--dry-run', '--json', '--mode', 'container', '--driver', 'oci', ...args],
        { place },
      );
    const refused = ask();
    expect(refused.status).toBe(125);
    const [, flag = '', promises = ''] = / (--weaker) (\S+)"/.exec(refused.stdout) ?? [];
    expect(promises).toBe(MISSING.join(','));
    const { status, stdout, stderr } = ask(flag, promises);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      mode: 'container',
      driver: 'oci',
      worktree_bound: 'watched',
    });
  });

  rootlessTest('[SC-04] giving up a part is not giving up all', () => {
    const { status, reply } = runAsNobody('echo ran', '--weaker', MISSING.slice(1).join(','));
    expect(status).toBe(125);
    expect(reply).toMatchObject({ detail: `nobody enforces: ${MISSING[0]}` });
  });

  rootlessTest('[SC-04] with these given up it runs, and the result says who enforces what', () => {
    const { status, reply } = runAsNobody('echo ran', '--weaker', MISSING.join(','));
    expect(status).toBe(0);
    expect(reply).toMatchObject({
      stdout: { text: 'ran\n' },
      isolation: {
        driver: 'oci',
        enforcement: {
          ...Object.fromEntries(MISSING.map((promise) => [promise, 'nobody'])),
          network: 'kernel',
          filesystem: 'kernel',
          processView: 'kernel',
          syscalls: 'kernel',
        },
      },
    });
  });

  rootlessTest('[SC-03] the program is user 1000 without any capability', () => {
    const told = sayInside("id -u; id -g; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status");
    expect(told.replace(/[\t ]+/g, ' ').split('\n')).toEqual([
      '1000',
      '1000',
      'CapEff: 0000000000000000',
      'CapBnd: 0000000000000000',
      'NoNewPrivs: 1',
      '',
    ]);
  });

  rootlessTest('[SC-03] there is no network, not even to a server on this machine', () => {
    const address = server?.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const told = sayInside(`tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '
(echo x >/dev/tcp/127.0.0.1/${port}) 2>/dev/null && echo reached || echo refused`);
    expect(told).toBe('lo\nrefused\n');
  });

  rootlessTest('[SC-03] the files are those of the cell', () => {
    expect(sayInside('cat /etc/passwd; ls -d /root /home /var 2>/dev/null; true')).toBe(
      'root:x:0:0::/:/usr/sbin/nologin\nrunner:x:1000:1000::/tmp:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n',
    );
  });

  rootlessTest('[SC-03] the home of the caller cannot be read, although its owner runs the cell', () => {
    const file = join(nobody.home, 'secret.txt');
    const ways = [file, `/proc/1/root${file}`, `/proc/self/cwd/../${file}`];
    const told = sayInside(`cat ${ways.join(' ')} 2>/dev/null; echo $?; echo $HOME`);
    expect(told).toBe('1\n/tmp\n');
  });

  rootlessTest('[SC-03] only the processes of the cell are seen', () => {
    expect(sayInside('ls /proc | grep -cE "^[0-9]+$"').trim()).toMatch(/^[1-6]$/);
  });

  rootlessTest('[SC-02] nothing is left afterwards', () => {
    const marker = makeMarker();
    expect(sayInside(`sleep ${marker} & echo started`)).toBe('started\n');
    expect(countMarked(marker)).toBe(0);
    expect(findTraces(nobody.state)).toEqual({
      processes: [],
      cgroups: [],
      mounts: [],
      folders: [],
    });
  });
});
