import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { waitFor } from '../support/leftovers.ts';
import { MiB, bash, finish, mainOf, readLine, runMain, specOf, survivors, type Subject } from './cells.ts';

/** What a driver must do with a program and its streams. */
export const PROGRAMS = {
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
    const name = randomUUID();
    const cell = await driver.create(specOf(undefined));
    const victim = await cell.exec(
      bash(`(setsid bash -c 'echo up; sleep 1000' victim-${name} &); sleep 1000`),
    );
    const other = await cell.exec(bash(`bash -c 'echo up; read line; echo got $line' other-${name}; exit`));
    // From inside: a cell with a kernel of its own shows the host none of its processes. The pattern is not what it finds.
    const look = async (): Promise<string> => {
      const exec = await cell.exec(
        bash(`grep -aoh '[a-z]*-${name.replace('-', '[-]')}' /proc/[0-9]*/cmdline; true`),
      );
      exec.closeStdin();
      return (await finish(exec)).stdout;
    };
    await Promise.all([readLine(victim), readLine(other)]);
    await victim.kill('cancelled');
    expect((await finish(victim)).outcome).toEqual({ kind: 'cancelled' });
    expect(new Set((await look()).trim().split('\n'))).toEqual(new Set([`other-${name}`]));
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
} satisfies Record<string, (subject: Subject) => Promise<void>>;
