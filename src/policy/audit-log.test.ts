import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SILENT_LOG } from '../core/log.ts';
import type { Log } from '../core/log.ts';
import type { AuditEntry } from './audit-entry.ts';
import { AuditLog } from './audit-log.ts';
import type { AuditLogParts } from './audit-log.ts';

const ENTRY: AuditEntry = { action: 'exec.start', tenant: 'acme', outcome: 'ok' };
const NOON = Date.UTC(2030, 0, 2, 12);

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'audit-'));
  file = join(folder, 'audit.log');
});
afterEach(() => rmSync(folder, { recursive: true }));

function makeLog(parts: Partial<AuditLogParts> = {}): AuditLog {
  const clock = { wallTimeMs: () => NOON };
  return new AuditLog({ file, maxBytes: 1024 * 1024, keep: 3, log: SILENT_LOG, clock, ...parts });
}

function linesOf(path = file): string[] {
  const content = readFileSync(path, 'utf8');
  expect(content.endsWith('\n')).toBe(true);
  return content.split('\n').slice(0, -1);
}

const detailsOf = (lines: readonly string[]): string[] =>
  lines.map((line) => (JSON.parse(line) as { detail: string }).detail);

function countingLog(): { log: Log; errors: string[]; warnings: string[] } {
  const errors: string[] = [];
  const warnings: string[] = [];
  const log: Log = {
    ...SILENT_LOG,
    error: (fields) => errors.push(JSON.stringify(fields)),
    warn: (fields) => warnings.push(JSON.stringify(fields)),
  };
  return { log, errors, warnings };
}

describe('the file', () => {
  test('[SC-05] has one line for each entry, in order, and only its owner may read it', async () => {
    await using audit = makeLog();
    for (let index = 0; index < 3000; index++) {
      audit.append({ ...ENTRY, detail: String(index) });
      if (index % 500 === 0) await audit.flush();
    }
    await audit.flush();
    expect(detailsOf(linesOf())).toEqual(Array.from({ length: 3000 }, (_, index) => String(index)));
    expect(JSON.parse(linesOf()[0] ?? '')).toMatchObject({
      time: '2030-01-02T12:00:00.000Z',
      tenant: 'acme',
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(audit.failures).toBe(0);
  });

  test('[SC-05] a flush is over when the entries before it are written, whatever comes after', async () => {
    await using audit = makeLog();
    let isOver = false;
    const feed = (): void => {
      audit.append({ ...ENTRY, detail: 'more' });
      if (!isOver) setImmediate(feed);
    };
    audit.append({ ...ENTRY, detail: 'first' });
    feed();
    await audit.flush();
    isOver = true;
    // The last line may be on its way.
    const [first = ''] = readFileSync(file, 'utf8').split('\n');
    expect(detailsOf([first])).toEqual(['first']);
  });

  test('[SC-05] a later start adds to it, and takes back what others were allowed', async () => {
    writeFileSync(file, '{"detail":"before"}\n');
    chmodSync(file, 0o644);
    await using audit = makeLog();
    audit.append({ ...ENTRY, detail: 'after' });
    await audit.flush();
    expect(detailsOf(linesOf())).toEqual(['before', 'after']);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('[SC-05] a torn last line stays alone', async () => {
    writeFileSync(file, '{"detail":"whole"}\n{"detail":"to');
    await using audit = makeLog();
    audit.append({ ...ENTRY, detail: 'next' });
    await audit.flush();
    const [whole = '', torn, next = '', ...others] = linesOf();
    expect([detailsOf([whole, next]), torn, others]).toEqual([['whole', 'next'], '{"detail":"to', []]);
  });

  test('[SC-05] nothing is appended after the close, and that is counted', async () => {
    const audit = makeLog();
    audit.append({ ...ENTRY, detail: 'in time' });
    await audit.close();
    audit.append({ ...ENTRY, detail: 'late' });
    await audit.close();
    expect([detailsOf(linesOf()), audit.failures]).toEqual([['in time'], 1]);
  });
});

describe('rotation', () => {
  /** All details, oldest first. */
  const everything = (keep: number): string[] =>
    Array.from({ length: keep + 1 }, (_, index) => keep - index)
      .map((number) => (number === 0 ? file : `${file}.${number}`))
      .filter((path) => existsSync(path))
      .flatMap((path) => detailsOf(linesOf(path)));

  test('[SC-05] bounds the size, keeps the newest and their order', async () => {
    await using audit = makeLog({ maxBytes: 2000, keep: 3 });
    for (let index = 0; index < 400; index++) {
      audit.append({ ...ENTRY, detail: String(index) });
      if (index % 7 === 0) await audit.flush();
    }
    await audit.flush();
    const names = ['audit.log', 'audit.log.1', 'audit.log.2', 'audit.log.3'];
    expect(readdirSync(folder).toSorted()).toEqual(names);
    for (const name of names) {
      const { size, mode } = statSync(join(folder, name));
      expect(size).toBeLessThanOrEqual(2000);
      expect(mode & 0o777).toBe(0o600);
    }
    const kept = everything(3);
    expect(kept.length).toBeGreaterThan(40);
    expect(kept).toEqual(
      Array.from({ length: kept.length }, (_, index) => String(400 - kept.length + index)),
    );
    expect(audit.failures).toBe(0);
  });

  test('[SC-05] goes by the size that a former start left', async () => {
    writeFileSync(file, `{"detail":"${'x'.repeat(1990)}"}\n`);
    await using audit = makeLog({ maxBytes: 2000 });
    audit.append({ ...ENTRY, detail: 'new' });
    await audit.flush();
    expect(detailsOf(linesOf())).toEqual(['new']);
    expect(statSync(`${file}.1`).size).toBeGreaterThan(1990);
  });

  test('[SC-05] keeps none if so asked', async () => {
    await using audit = makeLog({ maxBytes: 2000, keep: 0 });
    for (let index = 0; index < 100; index++) audit.append({ ...ENTRY, detail: String(index) });
    await audit.flush();
    expect(readdirSync(folder)).toEqual(['audit.log']);
    expect(detailsOf(linesOf()).at(-1)).toBe('99');
  });

  test('[SC-05] that was cut short costs no older file', async () => {
    writeFileSync(file, `{"detail":"${'x'.repeat(1990)}"}\n`);
    writeFileSync(`${file}.2`, '{"detail":"older"}\n');
    writeFileSync(`${file}.3`, '{"detail":"oldest"}\n');
    await using audit = makeLog({ maxBytes: 2000, keep: 3 });
    audit.append({ ...ENTRY, detail: 'new' });
    await audit.flush();
    expect(everything(3)).toEqual(['oldest', 'older', expect.stringMatching(/^x+$/), 'new']);
  });

  test('[SC-05] an entry larger than a file is written all the same', async () => {
    await using audit = makeLog({ maxBytes: 500, keep: 3 });
    audit.append({ ...ENTRY, detail: 'small' });
    audit.append({ ...ENTRY, detail: 'x'.repeat(1000) });
    audit.append({ ...ENTRY, detail: 'small again' });
    await audit.flush();
    expect(everything(3)).toEqual(['small', 'x'.repeat(1000), 'small again']);
  });
});

describe('trouble with the disk', () => {
  test('[SC-05] fails no request, is logged once, counted, and over when it is over', async () => {
    const { log, errors, warnings } = countingLog();
    mkdirSync(file);
    await using audit = makeLog({ log });
    for (let index = 0; index < 10; index++) {
      audit.append({ ...ENTRY, detail: 'lost' });
      await audit.flush();
    }
    expect([audit.failures, errors.length]).toEqual([10, 1]);
    expect(errors[0]).toContain('EISDIR');
    rmSync(file, { recursive: true });
    audit.append({ ...ENTRY, detail: 'kept' });
    await audit.flush();
    expect([detailsOf(linesOf()), audit.failures]).toEqual([['kept'], 10]);
    expect(warnings).toEqual([expect.stringContaining('"lost":10')]);
  });

  test('[SC-05] a link in the place of the file is not followed', async () => {
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'untouched');
    symlinkSync(victim, file);
    await using audit = makeLog();
    audit.append(ENTRY);
    await audit.flush();
    expect([readFileSync(victim, 'utf8'), audit.failures]).toEqual(['untouched', 1]);
  });

  test.each(['/dev/full', '/dev/null'])('[SC-05] %s is no audit log', async (device) => {
    await using audit = makeLog({ file: device });
    audit.append(ENTRY);
    await audit.flush();
    expect(audit.failures).toBe(1);
  });

  test('[SC-05] what waits for the disk is bounded', async () => {
    const { log, errors } = countingLog();
    const command = '\0'.repeat(8 * 1024);
    await using audit = makeLog({ log, maxBytes: 1024 ** 3 });
    for (let index = 0; index < 1000; index++) audit.append({ ...ENTRY, command });
    await audit.flush();
    expect(audit.failures).toBeGreaterThan(500);
    expect(linesOf()).toHaveLength(1000 - audit.failures);
    expect(errors).toEqual([expect.stringContaining('too slow')]);
  });
});

/** A process of its own that has the log as `audit` and counts the errors that it logs. */
function programOf(body: string): string[] {
  const path = fileURLToPath(new URL('./audit-log.ts', import.meta.url));
  const program = `
    import { truncateSync } from 'node:fs';
    import { AuditLog, SYSTEM_WALL_CLOCK } from ${JSON.stringify(path)};
    const ENTRY = ${JSON.stringify(ENTRY)};
    const file = process.argv[1];
    let errors = 0;
    const log = { debug() {}, info() {}, warn() {}, error() { errors++; } };
    const audit = new AuditLog({ file, maxBytes: 300_000, keep: 5, log, clock: SYSTEM_WALL_CLOCK });
    ${body}`;
  return [process.execPath, '--input-type=module', '-e', program, file];
}

test('[SC-05] a line that was torn by a full disk stays alone too', async () => {
  const argv = programOf(`
    while (audit.failures === 0) {
      audit.append({ ...ENTRY, detail: 'x'.repeat(100) });
      await audit.flush();
    }
    truncateSync(file, 1000);
    audit.append({ ...ENTRY, detail: 'after' });
    await audit.close();
    console.log(audit.failures, errors);`);
  // The largest size of a file is what fills up here: 4 KiB.
  const limited = ['-c', 'trap "" XFSZ; ulimit -f 4; exec "$@"', 'bash', ...argv];
  const child = spawn('bash', limited, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said, ended] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  expect([said, ended]).toEqual(['1 1\n', [0, null]]);
  const lines = linesOf();
  expect(lines.filter((line) => !isJson(line))).toHaveLength(1);
  expect(isJson(lines.at(-2) ?? '')).toBe(false);
  expect(detailsOf(lines.slice(-1))).toEqual(['after']);
});

test('[SC-05] a server killed at any moment leaves whole lines, and at most one torn at the end', async () => {
  const [node = '', ...argv] = programOf(`
    for (let index = 0; ; index++) {
      audit.append({ ...ENTRY, detail: String(index), command: 'x'.repeat(5000) });
      if (index % 50 === 0) await audit.flush();
    }`);
  const newestOldFile = (): number | undefined => statSync(`${file}.1`, { throwIfNoEntry: false })?.ino;
  for (let round = 0; round < 5; round++) {
    const before = newestOldFile();
    const child = spawn(node, argv, { stdio: 'inherit' });
    const ended = once(child, 'exit');
    try {
      await vi.waitFor(() => expect(newestOldFile()).not.toBe(before), { timeout: 20_000, interval: 1 });
    } finally {
      child.kill('SIGKILL');
    }
    expect(await ended).toEqual([null, 'SIGKILL']);
  }
  await using audit = makeLog();
  audit.append({ ...ENTRY, detail: 'last' });
  await audit.flush();
  const files = [5, 4, 3, 2, 1, 0].map((number) => (number === 0 ? file : `${file}.${number}`));
  const lines = files.filter((path) => existsSync(path)).flatMap((path) => linesOf(path));
  const torn = lines.filter((line) => !isJson(line));
  expect(lines.length).toBeGreaterThan(50);
  expect(torn.length).toBeLessThanOrEqual(5);
  expect(detailsOf(lines.slice(-1))).toEqual(['last']);
  const numbers = detailsOf(lines.filter(isJson)).slice(0, -1).map(Number);
  const restarts = numbers.filter((number, index) => index > 0 && number !== (numbers[index - 1] ?? 0) + 1);
  expect(restarts.filter((number) => number !== 0)).toEqual([]);
});

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
