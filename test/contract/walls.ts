import { execFileSync } from 'node:child_process';
import { expect } from 'vitest';
import { MiB, bash, finish, mainOf, python, runMain, specOf, type Subject } from './cells.ts';

/** Forks until it is refused, and says after how many children that was. */
const FORKER = python(`
import os, time
n = 0
try:
  while n < 500:
    if os.fork() == 0: time.sleep(100)
    n += 1
except OSError: print("refused", n)`);

/** What a driver must count, limit and keep out, each tried by breaking it. */
export const WALLS = {
  'CPU time is counted': async ({ driver }: Subject) => {
    const work = 'for _ in range(20_000_000): pass';
    // Not by clocks of the cell: those of a kernel of its own go on while others have the processor.
    const [file, ...args] = python(`import time\n${work}\nprint(time.process_time() * 1000)`).argv;
    const onHost = Number(execFileSync(file, args, { encoding: 'utf8' }));
    const busy = await runMain(driver, python(work));
    const idle = await runMain(driver, python('import time\ntime.sleep(0.6)'));
    expect((busy.usage.cpuMs - idle.usage.cpuMs) / onHost).toBeGreaterThan(1 / 3);
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
      await cell.limitMemory?.(bytes);
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
    // 1000 where ids are mapped, otherwise an id that nobody on the host has.
    expect(result.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /^(1000|1[89]\d{8}|20[01]\d{7}) CapPrm: 0{16} CapEff: 0{16} CapBnd: 0{16} $/,
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
