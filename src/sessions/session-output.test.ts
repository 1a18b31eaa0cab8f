import { describe, expect, test, vi } from 'vitest';
import type { OutputEvent, SessionExec } from './api.ts';
import { begin, lastOf, made } from './session-fixture.double.ts';

const NEVER = new AbortController().signal;

async function eventsOf(exec: SessionExec, from = 0): Promise<OutputEvent[]> {
  const events: OutputEvent[] = [];
  for await (const event of exec.follow(from, NEVER)) events.push(event);
  return events;
}

describe('the output of commands', () => {
  test('[RS-05] streams, and can be read again from any byte, also after the end', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const exec = await begin(session, 'talk');
    const live = eventsOf(exec);
    lastOf(fixture).say('abc');
    lastOf(fixture).say('def', 'stderr');
    lastOf(fixture).exit(0);
    const text = (events: OutputEvent[]): string[] =>
      events.map((event) =>
        'bytes' in event
          ? `${event.type} ${event.from} ${Buffer.from(event.bytes).toString()}`
          : `${event.type} ${event.from}`,
      );
    expect(text(await live)).toEqual(['stdout 0 abc', 'stderr 3 def', 'exit 6']);
    const found = session.findExec(exec.id);
    expect(text(await eventsOf(found, 4))).toEqual(['stderr 4 ef', 'exit 6']);
    expect(await found.read(2, 1000)).toMatchObject({
      from: 2,
      next: 6,
      chunks: [
        { stream: 'stdout', from: 2, bytes: Buffer.from('c') },
        { stream: 'stderr', from: 3, bytes: Buffer.from('def') },
      ],
      cut: [],
      result: { ok: true },
    });
  });

  test('[RS-06] a reply is cut in the middle and says how much', async () => {
    const { fixture, session } = await made({
      output: { replyBytes: 4096, headBytes: 65_536, tailBytes: 65_536 },
    });
    await using _ = fixture;
    const exec = await begin(session, 'flood');
    const lines = Array.from({ length: 60_000 }, (_unused, line) => `line ${line}\n`).join('');
    for (let at = 0; at < lines.length; at += 50_000) lastOf(fixture).say(lines.slice(at, at + 50_000));
    lastOf(fixture).say('é'.repeat(3000), 'stderr');
    lastOf(fixture).exit(0);
    const reply = await exec.report();
    expect(reply.stdout).toMatch(/^line 0\nline 1\n[^]*\[… \d+ bytes cut …\][^]*line 59999\n$/);
    expect(reply.stderr).toMatch(/^\[… \d+ bytes cut …\]\né{1024}$/);
    expect(reply.stdout.length).toBeLessThan(2200);
    const cut = [...`${reply.stdout}${reply.stderr}`.matchAll(/\[… (\d+) bytes cut …\]/g)].map(([, bytes]) =>
      Number(bytes),
    );
    expect(reply.cutBytes).toBe((cut[0] ?? 0) + (cut[1] ?? 0));
    const kept =
      Buffer.byteLength(reply.stdout.replace(/\n?\[….*…\]\n/, '')) +
      Buffer.byteLength(reply.stderr.replace(/\n?\[….*…\]\n/, ''));
    expect(kept + reply.cutBytes).toBe(reply.stdoutBytes + reply.stderrBytes);
  });

  test('[RS-06] no character is torn between two parts', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const exec = await begin(session, 'bytes');
    lastOf(fixture).say(Buffer.from([0x61, 0xe2, 0x82]));
    await vi.waitFor(() => expect(exec.outputBytes).toBe(3));
    const first = await exec.read(0, 100);
    expect(first).toMatchObject({ next: 1, chunks: [{ bytes: Buffer.from('a') }], result: undefined });
    lastOf(fixture).say(Buffer.from([0xac]));
    lastOf(fixture).say(Buffer.from([0xff]), 'stderr');
    lastOf(fixture).exit(0);
    await exec.result;
    expect((await exec.read(first.next, 100)).chunks).toEqual([
      { stream: 'stdout', from: 1, bytes: Buffer.from('€') },
      { stream: 'stderr', from: 4, bytes: Buffer.from([0xff]) },
    ]);
  });

  test('[RS-06] old commands make room for new ones', async () => {
    const { fixture, session } = await made({ execsKept: 3 });
    await using _ = fixture;
    fixture.host.program = (command) => {
      command.say('x');
      command.exit(0);
    };
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) {
      const exec = await begin(session, `echo ${count}`);
      await exec.result;
      ids.push(exec.id);
    }
    expect(session.execs().map(({ id }) => id)).toEqual(ids.slice(2));
    expect(() => session.findExec(ids[0] ?? '')).toThrow(expect.objectContaining({ code: 'EXEC_UNKNOWN' }));
  });

  test('[RS-02] is stored before the cell may forget it', async () => {
    const { fixture, session } = await made();
    await using _ = fixture;
    const exec = await begin(session, 'talk');
    const command = lastOf(fixture);
    command.say('x'.repeat(1000));
    await vi.waitFor(() => expect(command.noted).toBe(1000));
    expect(exec.outputBytes).toBe(1000);
    command.exit(0);
    await exec.result;
    await vi.waitFor(() => expect(command.heard).toContain('forget'));
  });
});
