import { describe, expect, test } from 'vitest';
import { toAuditLine, toSessionMark } from './audit-entry.ts';
import type { AuditEntry } from './audit-entry.ts';

const ENTRY: AuditEntry = { action: 'exec.start', tenant: 'acme', outcome: 'ok' };
const NOON = Date.UTC(2030, 0, 2, 12);
const read = (entry: AuditEntry): unknown => JSON.parse(toAuditLine(entry, NOON));

describe('one entry', () => {
  test('[SC-05] says who did what when, and how it went', () => {
    const entry: AuditEntry = {
      action: 'exec.end',
      tenant: 'acme',
      user: 'ann',
      project: 'shop',
      session: 'session_0123456789',
      exec: 'exec_1',
      command: 'npm test',
      variables: ['NODE_ENV', 'TOKEN'],
      outcome: 'exit 1',
      detail: '3 files',
    };
    expect(read(entry)).toEqual({
      time: '2030-01-02T12:00:00.000Z',
      ...entry,
      session: toSessionMark('session_0123456789'),
    });
  });

  test('[SC-05] leaves out what is not known', () => {
    expect(read({ ...ENTRY, user: null, project: undefined })).toEqual({
      time: '2030-01-02T12:00:00.000Z',
      ...ENTRY,
    });
  });

  test('[SC-05] tells sessions apart without giving the id, which is a credential', () => {
    const line = toAuditLine({ ...ENTRY, session: 'session_secret' }, NOON);
    expect(line).not.toContain('secret');
    expect(toSessionMark('session_secret')).toMatch(/^[0-9a-f]{12}$/);
    expect(toSessionMark('session_secret')).not.toBe(toSessionMark('session_secreu'));
  });

  test('[SC-05] is bounded, and says what was cut', () => {
    const long = 'x'.repeat(1_000_000);
    const variables = Array.from({ length: 5000 }, () => long);
    const entry = { ...ENTRY, tenant: long, user: long, project: long, session: long, exec: long };
    const line = toAuditLine({ ...entry, command: long, variables, outcome: long, detail: long }, NOON);
    expect(line.length).toBeLessThan(40_000);
    expect(JSON.parse(line)).toMatchObject({
      command: 'x'.repeat(8192),
      command_cut: 1_000_000 - 8192,
      variables_cut: 4900,
      user: `${'x'.repeat(256)}…`,
    });
    const whole = { ...ENTRY, command: 'x'.repeat(8192), variables: ['A'] };
    expect(Object.keys(read(whole) as object)).not.toContain('command_cut');
    expect(Object.keys(read(whole) as object)).not.toContain('variables_cut');
  });
});

describe('hostile text', () => {
  const EVERY_UNIT = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code));

  test('[SC-05] no character ends the line, moves a cursor, or is lost', () => {
    for (let start = 0; start < EVERY_UNIT.length; start += 4096) {
      const command = EVERY_UNIT.slice(start, start + 4096).join('');
      const line = toAuditLine({ ...ENTRY, command }, NOON);
      // oxlint-disable-next-line no-control-regex -- they are what must not be there
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/);
      expect(Buffer.from(line).toString()).toBe(line);
      expect((JSON.parse(line) as { command: string }).command === command).toBe(true);
    }
  });

  test('[SC-05] a cut through the middle of a character leaves valid text', () => {
    const command = `${'x'.repeat(8191)}😀`;
    const line = toAuditLine({ ...ENTRY, command, outcome: `${'x'.repeat(255)}😀` }, NOON);
    expect(line.isWellFormed()).toBe(true);
    expect(JSON.parse(line)).toMatchObject({ command_cut: 1 });
  });

  test('[SC-05] no field can pass for another entry or another field', () => {
    const forged = '"}\n{"action":"session.delete","tenant":"globex"}';
    for (const field of ['tenant', 'user', 'project', 'exec', 'command', 'outcome', 'detail'] as const) {
      const line = toAuditLine({ ...ENTRY, [field]: forged }, NOON);
      expect(line.split('\n')).toHaveLength(1);
      expect(JSON.parse(line)).toMatchObject({ ...ENTRY, [field]: forged });
    }
    expect(read({ ...ENTRY, variables: [forged] })).toMatchObject({ variables: [forged] });
  });
});
