import { randomInt } from 'node:crypto';
import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ExecReply } from '../../src/wire/session-exec.ts';
import { howOften } from '../support/endurance.ts';
import { waitFor } from '../support/leftovers.ts';
import { makeMarker } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import type { Hand } from '../support/session-door.ts';
import { ServedSessions } from '../support/session-site.ts';
import { openTerminal } from '../support/session-terminal.ts';
import { count, countCells, countMarked, countMounts, each, expectWhole } from '../support/session-work.ts';

describeEach(FRESH_WAYS, (way) => {
  const sessions = way.driver === 'oci' ? howOften(25, 200) : 5;
  const rounds = way.driver === 'oci' ? howOften(6, 20) : howOften(3, 8);

  describe('kill -9 of the server', () => {
    test(
      `[RS-22, SC-02] ${sessions} sessions at work: all are there again, with every line of output once`,
      { timeout: 300_000 },
      async () => {
        await using served = await ServedSessions.open({ way });
        const door = served.door();
        const marker = makeMarker();
        const hands = await each(Array.from({ length: sessions }), () => door.create());
        const execs = await each(hands, async (hand) => {
          await hand.print('mkdir sub && cd sub');
          return hand.begin(count(marker));
        });
        const killedAt = Date.now() / 1000;
        await served.kill('SIGKILL');
        // Also those that had only just been begun.
        await waitFor('all go on', () => countMarked(marker) === sessions);
        // They are seen, or it would prove nothing that nothing is seen at the end.
        const remains = await served.remains();
        for (const kind of [/^mount .*volumes\/./, /^loop\d/, /^\/.*\.img$/])
          expect(remains.filter((line) => kind.test(line))).toHaveLength(sessions);
        expect(remains.filter((line) => /^pid \d/.test(line)).length).toBeGreaterThan(sessions);
        await sleep(2000);
        const startedAt = Date.now() / 1000;
        await served.start();
        expect(countMarked(marker)).toBe(sessions);
        const listed = await door.list();
        expect(new Set(listed.map(({ session_id: id }) => id))).toEqual(new Set(hands.map(({ id }) => id)));
        for (const { project_id: project, cwd } of listed) expect(cwd).toBe(`/workspace/${project}/sub`);

        const outputs = await each(hands, async (hand) => {
          const [exec] = (await hand.get<{ execs: ExecReply[] }>('GET', '/execs')).execs.filter(
            ({ background }) => background,
          );
          expect(exec?.state).toBe('running');
          expect(await hand.print('pwd; touch stop')).toBe(`${hand.made.workspace_path}/sub\n`);
          const { end } = await hand.result(exec?.exec_id ?? '');
          expect(end.reason).toBe('exit');
          return hand.output(exec?.exec_id ?? '');
        });
        for (const output of outputs) {
          const times = expectWhole(output);
          expect(times.some((time) => time > killedAt && time < startedAt)).toBe(true);
        }
        expect(execs).toHaveLength(sessions);
        expect(countMarked(marker)).toBe(0);
      },
    );

    describe('for one session', () => {
      let served: ServedSessions;
      beforeAll(async () => {
        served = await ServedSessions.open({ way });
      });
      afterAll(() => served[Symbol.asyncDispose]());

      test('[RS-22] a terminal goes on, and whoever comes back sees what was there', async () => {
        await using hand = await served.door().create();
        const first = await openTerminal(served.server, hand.id);
        first.type('echo before-$((6 * 7))\n');
        await first.shows('before-42');
        const [{ exec_id: id } = { exec_id: '' }] = (await hand.get<{ execs: ExecReply[] }>('GET', '/execs'))
          .execs;
        await served.restart();
        const again = await openTerminal(served.server, hand.id, id);
        await again.shows('before-42');
        again.type('echo after-$((7 * 7))\n');
        await again.shows('after-49');
        again.type('exit 5\n');
        expect(await hand.result(id)).toMatchObject({ exit_code: 5, end: { reason: 'exit' } });
        first.close();
        again.close();
      });

      test('[RS-22] what ended meanwhile is told as it ended', async () => {
        await using hand = await served.door().create();
        const marker = makeMarker();
        const untilToldTo = `perl -e 'select undef, undef, undef, 0.1 until -e "stop"`;
        const code = await hand.begin(`${untilToldTo}; print "last"; exit 7' ${marker}`);
        const signal = await hand.begin(`${untilToldTo}' ${marker}; kill $$`);
        const timed = await hand.begin('sleep 600', { timeout_s: 1 });
        const due = Date.now() + 1000;
        await waitFor('both run', () => countMarked(marker) === 2);
        await served.kill();
        const [folder = 'none'] = globSync(`${served.dataDirectory}/volumes/*/${hand.made.project_id}`);
        writeFileSync(join(folder, 'stop'), '');
        await waitFor('both have ended', () => countMarked(marker) === 0);
        await waitFor('the time of the third is over', () => Date.now() > due);
        await served.start();
        expect(await hand.result(code)).toMatchObject({
          exit_code: 7,
          stdout_bytes: 4,
          end: { reason: 'exit' },
        });
        expect(await hand.output(code)).toBe('last');
        expect(await hand.result(signal)).toMatchObject({ end: { reason: 'signal', signal: 'SIGTERM' } });
        expect(await hand.result(timed)).toMatchObject({ exit_code: 124, end: { reason: 'timeout' } });
        await hand.expectUsable();
      });

      test('[RS-22] input still reaches a command, and files are as they were', async () => {
        await using hand = await served.door().create();
        await hand.get('POST', '/upload', { files: [{ path: 'kept.txt', content: 'kept' }] });
        const { cursor } = await hand.get<{ cursor: string }>('GET', '/changes');
        const reader = await hand.begin('while read line; do echo "got $line"; done');
        await hand.get('POST', `/execs/${reader}/stdin`, { data: 'one\n' });
        await waitFor('it has read', async () => (await hand.output(reader)) === 'got one\n');
        await served.restart();
        await hand.get('POST', `/execs/${reader}/stdin`, { data: 'two\n', eof: true });
        expect(await hand.result(reader)).toMatchObject({ ok: true });
        expect(await hand.output(reader)).toBe('got one\ngot two\n');
        expect(await hand.get('GET', `/changes?since=${cursor}`)).toMatchObject({ changes: [] });
        expect(await hand.print('cat kept.txt')).toBe('kept');
        await hand.expectUsable();
      });

      test('[RS-22] a paused session is paused afterwards', async () => {
        await using hand = await served.door().create();
        const counter = await hand.begin(count(makeMarker()));
        await hand.get('POST', '/pause');
        await served.restart();
        expect(await hand.detail()).toMatchObject({ state: 'paused' });
        expect(await hand.ask('POST', '/exec', { command: 'true' })).toMatchObject({ status: 409 });
        await hand.get('POST', '/resume');
        await hand.print('touch stop');
        await hand.result(counter);
        expectWhole(await hand.output(counter));
      });
    });

    test(
      `[SC-02, RS-22] ${rounds} times amid creations and deletions: nothing is orphaned, nothing acknowledged is lost`,
      { timeout: 300_000 },
      async () => {
        await using served = await ServedSessions.open({ way });
        const door = served.door();
        let known: Hand[] = [];
        for (let round = 0; round < rounds; round++) {
          const doomed = known.slice(0, Math.floor(known.length / 2));
          const kept = known.slice(doomed.length);
          const created: Hand[] = [];
          const deleted: Hand[] = [];
          const work = [
            ...Array.from({ length: 4 }, () => door.create().then((hand) => created.push(hand))),
            ...doomed.map((hand) => hand.remove().then(() => deleted.push(hand))),
          ];
          const ends = Promise.allSettled(work);
          // At a moment of its own each time.
          await sleep(randomInt(0, way.slowBoot ? 1500 : 500));
          await served.kill();
          await ends;
          await served.start();
          const listed = (await door.list()).map(({ session_id: id }) => id);
          const acknowledged = [...kept, ...created];
          const facts = {
            lost: acknowledged.filter(({ id }) => !listed.includes(id)).length,
            risen: deleted.filter(({ id }) => listed.includes(id)).length,
            cells: (await countCells(served)) - listed.length,
            mounts: countMounts(served) - listed.length,
          };
          expect({ round, ...facts }).toEqual({ round, lost: 0, risen: 0, cells: 0, mounts: 0 });
          // Also those that nobody was told of: either they are whole, or they are not there.
          known = await Promise.all(
            (await door.list()).map(async (made) => {
              const hand = door.hold(made);
              expect(await hand.print('pwd')).toBe(`${made.workspace_path}\n`);
              return hand;
            }),
          );
        }
      },
    );
  });
});
