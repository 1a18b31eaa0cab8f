import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, type TestFunction } from 'vitest';
import type { Cell, CellSpec } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import type { Exec, ExecOutcome, ExecRequest, Usage } from '../../src/core/exec.ts';
import { DEFAULT_LIMITS, type Limits } from '../../src/core/limits.ts';
import { listProcesses, waitFor } from '../support/leftovers.ts';

/** What a driver is not held to, with the reason; a reason is needed, and it stands in the driver table of the docs. */
export type Exemptions = Readonly<Partial<Record<ContractName, string>>>;
export type ContractName = keyof typeof CONTRACT;

interface Subject {
  readonly driver: Driver;
}

interface Finished {
  readonly stdout: string;
  readonly stderr: string;
  readonly outcome: ExecOutcome;
  readonly usage: Usage;
}

const MiB = 1024 * 1024;

function specOf(main: ExecRequest | undefined, limits: Partial<Limits> = {}): CellSpec {
  return {
    name: `contract-${randomUUID().slice(0, 8)}`,
    kind: 'run',
    limits: { ...DEFAULT_LIMITS, ...limits },
    ...(main === undefined ? {} : { main }),
  };
}

const bash = (script: string, env: Record<string, string> = {}): ExecRequest => ({
  argv: ['bash', '-c', script],
  env,
});
const python = (script: string): ExecRequest => ({ argv: ['python3', '-u', '-c', script], env: {} });

async function finish(exec: Exec): Promise<Finished> {
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  for await (const event of exec.events) {
    if (event.type === 'stdout') out.push(Buffer.from(event.bytes));
    else if (event.type === 'stderr') err.push(Buffer.from(event.bytes));
    else {
      return {
        stdout: Buffer.concat(out).toString(),
        stderr: Buffer.concat(err).toString(),
        outcome: event.outcome,
        usage: event.usage,
      };
    }
  }
  throw new Error('no exit event');
}

function mainOf(cell: Cell): Exec {
  if (cell.main === undefined) throw new Error('the cell has no main program');
  return cell.main;
}

/** Makes a cell for one program, gives it its input and waits for its end. */
async function runMain(
  driver: Driver,
  main: ExecRequest,
  options: { limits?: Partial<Limits>; stdin?: string } = {},
): Promise<Finished> {
  const cell = await driver.create(specOf(main, options.limits));
  try {
    const program = mainOf(cell);
    if (options.stdin !== undefined) program.write(Buffer.from(options.stdin));
    program.closeStdin();
    return await finish(program);
  } finally {
    await cell.dispose();
  }
}

/** Reads until a line is complete, so that a test knows the program has come that far. */
async function readLine(exec: Exec): Promise<string> {
  let text = '';
  for await (const event of exec.events) {
    if (event.type === 'stdout') text += Buffer.from(event.bytes).toString();
    if (text.includes('\n')) return text;
  }
  throw new Error(`ended before a line was complete: ${text}`);
}

/** Forks until it is refused, and says after how many children that was. */
const FORKER = python(`
import os, time
n = 0
try:
  while n < 500:
    if os.fork() == 0: time.sleep(100)
    n += 1
except OSError: print("refused", n)`);

const survivors = (marker: string): string[] => listProcesses().filter((line) => line.includes(marker));

/** The promises of the Driver port, each tried by breaking it. */
export const CONTRACT = {
  'streams and exit code': async ({ driver }: Subject) => {
    const result = await runMain(driver, bash('echo out; echo err >&2; exit 7'));
    expect(result).toMatchObject({ stdout: 'out\n', stderr: 'err\n', outcome: { kind: 'exited', code: 7 } });
  },
  'standard input to its end': async ({ driver }: Subject) => {
    const input = 'x'.repeat(300_000);
    const result = await runMain(driver, bash('wc -c'), { stdin: input });
    expect(result.stdout.trim()).toBe('300000');
  },
  'bytes stay bytes': async ({ driver }: Subject) => {
    const cell = await driver.create(specOf(bash(String.raw`printf '\000\377\r\n\xe2\x82'`)));
    const bytes: number[] = [];
    for await (const event of mainOf(cell).events) if (event.type === 'stdout') bytes.push(...event.bytes);
    await cell.dispose();
    expect(bytes).toEqual([0, 0xff, 0x0d, 0x0a, 0xe2, 0x82]);
  },
  '/dev/stdout and /dev/stderr can be opened again': async ({ driver }: Subject) => {
    const result = await runMain(
      driver,
      bash('echo one > /dev/stdout; echo two > /dev/stderr; cat /dev/stdin'),
      {
        stdin: 'three',
      },
    );
    expect(result).toMatchObject({ stdout: 'one\nthree', stderr: 'two\n' });
  },
  'a signal is told apart from exit 137': async ({ driver }: Subject) => {
    const killed = await runMain(driver, bash('kill -9 $$'));
    const exited = await runMain(driver, bash('exit 137'));
    expect(killed.outcome).toEqual({ kind: 'signalled', signal: 9 });
    expect(exited.outcome).toEqual({ kind: 'exited', code: 137 });
  },
  'only the given environment': async ({ driver }: Subject) => {
    process.env['CONTRACT_SECRET'] = 'seen-by-nobody';
    const result = await runMain(driver, bash('env', { GIVEN: 'yes' }));
    delete process.env['CONTRACT_SECRET'];
    expect(result.stdout).toContain('GIVEN=yes');
    expect(result.stdout).not.toContain('seen-by-nobody');
  },
  'kill ends the whole tree': async ({ driver }: Subject) => {
    const marker = `survivor-${randomUUID()}`;
    const cell = await driver.create(
      // The child of setsid has left its parent, its session and its process group, and holds stdout open.
      specOf(bash(`(setsid bash -c 'echo up; exec -a ${marker} sleep 1000' &) ; sleep 1000 & sleep 1000`)),
    );
    expect(await readLine(mainOf(cell))).toBe('up\n');
    await mainOf(cell).kill('wallTimeMs');
    const end = await finish(mainOf(cell));
    await cell.dispose();
    expect(end.outcome).toEqual({ kind: 'limit', limit: 'wallTimeMs' });
    // By the cell's id too: a cell with a kernel of its own shows the host none of its processes.
    await waitFor('the escapee is gone', () => [...survivors(marker), ...survivors(cell.id)].length === 0);
  },
  'a daemon that holds stdout does not delay the end': async ({ driver }: Subject) => {
    const marker = `daemon-${randomUUID()}`;
    const result = await runMain(
      driver,
      bash(`(setsid bash -c 'exec -a ${marker} sleep 1000' &); echo done`),
    );
    expect(result).toMatchObject({ stdout: 'done\n', outcome: { kind: 'exited', code: 0 } });
    await waitFor('the daemon is gone', () => survivors(marker).length === 0);
  },
  'cancelling is an outcome of its own': async ({ driver }: Subject) => {
    const cell = await driver.create(specOf(bash('echo up; sleep 1000')));
    await readLine(mainOf(cell));
    await mainOf(cell).kill('cancelled');
    const end = await finish(mainOf(cell));
    await cell.dispose();
    expect(end.outcome).toEqual({ kind: 'cancelled' });
  },
  'a slow reader stops the writer': async ({ driver }: Subject) => {
    const cell = await driver.create(specOf(bash('echo up; head -c 200000000 /dev/zero; echo end >&2')));
    await readLine(mainOf(cell));
    const before = process.memoryUsage.rss();
    await sleep(500);
    const grown = process.memoryUsage.rss() - before;
    await cell.dispose();
    expect(grown).toBeLessThan(64 * MiB);
  },
  'exec in a running cell': async ({ driver }: Subject) => {
    const cell = await driver.create(specOf(undefined));
    const first = await cell.exec(bash('cat; echo err >&2; echo $HERE; exit 3', { HERE: 'yes' }));
    first.write(Buffer.from('in '));
    first.closeStdin();
    const result = await finish(first);
    await cell.dispose();
    expect(result).toMatchObject({
      stdout: 'in yes\n',
      stderr: 'err\n',
      outcome: { kind: 'exited', code: 3 },
    });
  },
  'files stay between the execs of a cell': async ({ driver }: Subject) => {
    const cell = await driver.create(specOf(undefined));
    const write = await cell.exec(bash('echo kept > note'));
    write.closeStdin();
    await finish(write);
    const read = await cell.exec(bash('cat note'));
    read.closeStdin();
    const result = await finish(read);
    await cell.dispose();
    expect(result.stdout).toBe('kept\n');
  },
  'killing one exec leaves the other': async ({ driver }: Subject) => {
    const marker = `exec-child-${randomUUID()}`;
    const cell = await driver.create(specOf(undefined));
    const victim = await cell.exec(
      bash(`(setsid bash -c 'exec -a ${marker} sleep 1000' &); echo up; sleep 1000`),
    );
    const other = await cell.exec(bash('read line; echo got $line'));
    await readLine(victim);
    await waitFor('the child runs', () => survivors(marker).length > 0);
    await victim.kill('cancelled');
    expect((await finish(victim)).outcome).toEqual({ kind: 'cancelled' });
    await waitFor('the child is gone', () => survivors(marker).length === 0);
    other.write(Buffer.from('hello\n'));
    const result = await finish(other);
    await cell.dispose();
    expect(result).toMatchObject({ stdout: 'got hello\n', outcome: { kind: 'exited', code: 0 } });
  },
  'cells do not share files': async ({ driver }: Subject) => {
    const name = `shared-${randomUUID()}`;
    await runMain(driver, bash(`echo secret > ${name}; echo secret > /tmp/${name} 2>/dev/null; true`));
    const other = await runMain(driver, bash(`cat ${name} /tmp/${name} /dev/shm/${name} 2>/dev/null; true`));
    expect(other.stdout).toBe('');
  },
  'dispose twice, and during the boot': async ({ driver }: Subject) => {
    const cell = await driver.create(specOf(bash('sleep 1000')));
    await Promise.all([cell.dispose(), cell.dispose()]);
    await cell.gone;
    expect(driver.list().map(({ id }) => id)).not.toContain(cell.id);
  },
  'CPU time is counted': async ({ driver }: Subject) => {
    const busy = await runMain(
      driver,
      python('import time\nt=time.process_time()\nwhile time.process_time()-t<0.6: pass'),
    );
    const idle = await runMain(driver, python('import time\ntime.sleep(0.6)'));
    expect(busy.usage.cpuMs - idle.usage.cpuMs).toBeGreaterThan(300);
  },
  'memory is counted': async ({ driver }: Subject) => {
    const large = await runMain(driver, python(`x = bytearray(${100 * MiB})`));
    const small = await runMain(driver, python('pass'));
    expect(large.usage.peakMemoryBytes).toBeGreaterThan(100 * MiB);
    expect(small.usage.peakMemoryBytes).toBeLessThan(50 * MiB);
  },
  'CPU limit': async ({ driver }: Subject) => {
    const hog =
      'import os,time\nfor _ in range(3): os.fork()\nend=time.monotonic()+1.5\nwhile time.monotonic()<end: pass';
    const startedAt = performance.now();
    const result = await runMain(driver, python(hog), { limits: { cpus: 0.25 } });
    const share = result.usage.cpuMs / (performance.now() - startedAt);
    expect(share).toBeLessThan(0.4);
  },
  'memory limit': async ({ driver }: Subject) => {
    const result = await runMain(driver, python(`x = bytearray(${512 * MiB}); print("survived")`), {
      limits: { memoryBytes: 64 * MiB },
    });
    expect(result).toMatchObject({ stdout: '', outcome: { kind: 'limit', limit: 'memoryBytes' } });
  },
  'the memory limit of a running cell can be changed': async ({ driver }: Subject) => {
    const program = `input()\nx = bytearray(${128 * MiB})\nprint("survived")`;
    const outcomes: string[] = [];
    for (const bytes of [64 * MiB, 300 * MiB]) {
      const cell = await driver.create(specOf(python(program), { memoryBytes: 96 * MiB }));
      await cell.limitMemory(bytes);
      mainOf(cell).write(Buffer.from('go\n'));
      outcomes.push((await finish(mainOf(cell))).stdout);
      await cell.dispose();
    }
    expect(outcomes).toEqual(['', 'survived\n']);
  },
  'process limit': async ({ driver }: Subject) => {
    const result = await runMain(driver, FORKER, { limits: { processes: 20 } });
    expect(result.stdout).toMatch(/^refused 1\d\n$/);
  },
  'a process limit that was reached is reported': async ({ driver }: Subject) => {
    const result = await runMain(driver, FORKER, { limits: { processes: 20 } });
    expect(result.usage.reached).toContain('processes');
  },
  'disk limit': async ({ driver }: Subject) => {
    const result = await runMain(driver, bash('head -c 30000000 /dev/zero > big; echo $?; wc -c < big'), {
      limits: { diskBytes: 16 * MiB },
    });
    expect(result.stderr).toContain('No space left on device');
    expect(result.stdout).toBe(`1\n${16 * MiB}\n`);
  },
  'open files limit': async ({ driver }: Subject) => {
    const result = await runMain(
      driver,
      python(
        'f=[]\ntry:\n  while len(f)<5000: f.append(open("/dev/null"))\nexcept OSError as e: print(e.errno, len(f))',
      ),
      { limits: { openFiles: 64 } },
    );
    expect(result.stdout).toMatch(/^24 [56]\d\n$/);
  },
  'no network': async ({ driver }: Subject) => {
    const result = await runMain(
      driver,
      bash('cat /proc/net/dev | tail -n +3 | cut -d: -f1 | grep -v -w lo; cat /proc/net/route | tail -n +2'),
    );
    expect(result.stdout.trim()).toBe('');
  },
  'nothing writable but the workdir': async ({ driver }: Subject) => {
    const attempts =
      '/x /etc/x /usr/x /bin/x /dev/x /run/x /opt/x /var/x /root/x /home/x /proc/sys/kernel/hostname';
    const result = await runMain(
      driver,
      bash(`for f in ${attempts}; do (echo hi > $f) 2>/dev/null && echo wrote $f; done; true`),
    );
    expect(result.stdout).toBe('');
  },
  'no privileges': async ({ driver }: Subject) => {
    const result = await runMain(driver, bash('id -u; grep -E "^(CapEff|CapBnd|CapPrm):" /proc/self/status'));
    expect(result.stdout.replaceAll(/\s+/g, ' ')).toBe(
      '1000 CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 ',
    );
  },
  'no new privileges': async ({ driver }: Subject) => {
    const result = await runMain(driver, bash('grep ^NoNewPrivs: /proc/self/status'));
    expect(result.stdout).toBe('NoNewPrivs:\t1\n');
  },
  'system calls are filtered': async ({ driver }: Subject) => {
    const result = await runMain(driver, bash('grep ^Seccomp: /proc/self/status; unshare -U true 2>&1'));
    expect(result.stdout).toMatch(/Seccomp:\s+2/);
    expect(result.stdout).toMatch(/unshare failed: Operation not permitted/);
  },
  'sees only its own processes': async ({ driver }: Subject) => {
    const result = await runMain(driver, bash('ls /proc | grep -E "^[0-9]+$" | wc -l'));
    expect(Number(result.stdout)).toBeLessThan(8);
  },
} satisfies Record<string, (subject: Subject) => Promise<void>>;

/** Holds one driver to the contract. `ids` are cited in the name of the suite. */
export function driverContract(subject: {
  readonly title: string;
  readonly test: typeof test | typeof test.skip;
  readonly exempt: Exemptions;
  /** Made once for the whole suite. */
  makeDriver(): Driver;
}): void {
  describe(subject.title, () => {
    const driver = subject.makeDriver();
    for (const [name, check] of Object.entries(CONTRACT)) {
      const reason = subject.exempt[name as ContractName];
      if (reason !== undefined) continue;
      const run: TestFunction = () => check({ driver });
      subject.test(name, run);
    }
    subject.test('[SC-02] close leaves no cell', async () => {
      await driver.create(specOf(bash('sleep 1000')));
      await driver.close();
      expect(driver.list()).toEqual([]);
    });
  });
}
