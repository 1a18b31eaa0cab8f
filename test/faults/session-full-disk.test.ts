import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { howOften } from '../support/endurance.ts';
import { waitFor } from '../support/leftovers.ts';
import { fillWith } from '../support/own-disk.ts';
import { OCI_FRESH, describeEach } from '../support/served-by.ts';
import { ServedSessions } from '../support/session-site.ts';

const MiB = 1024 * 1024;
const LIMITS = { disk_mb: 16 };
/** For a few sessions, and what the server writes. */
const DISK_BYTES = 96 * MiB;

/**
 * Waits for the file `go`, writes files and has each of them on the disk, fills the workspace until it is refused, and makes
 * room for the report of it. Prints nothing: output would have to be kept on the disk that is full.
 */
const WRITER = String.raw`
use strict; use warnings; use IO::Handle;
sub put { my ($path, $bytes) = @_; open my $file, '>', $path or die "$path: $!";
  for (my $n = 0; $n < length $bytes;) { $n += syswrite($file, $bytes, length $bytes, $n) // die "$path: $!" }
  $file->sync or die "$path: $!" }
select undef, undef, undef, 0.02 until -e 'go';
my $words = eval {
  for my $n (1 .. 600) { my $folder = 'many' . $n % 40; mkdir $folder; put("$folder/$n", "number $n\n") }
  put('large', join '', map { sprintf "%063d\n", $_ } 1 .. 65536); 'written' } // $@;
eval { put("fill$_", 'x' x 262144) for 1 .. 1000 };
$words .= " then $@"; unlink glob 'fill*'; put('report.new', $words); rename 'report.new', 'report';
`;
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
const digest = (lines: readonly string[]): string =>
  `${createHash('sha256').update(lines.join('')).digest('hex')}  -\n`;

/** All that the writer has written, and what was there before it. */
const LOOK = 'cat many*/* | sort -n -k 2 | sha256sum; sha256sum <large; cat uploaded.txt printed.txt';
const WRITTEN = [
  digest(numbers(600).map((n) => `number ${n}\n`)),
  digest(numbers(65_536).map((n) => `${String(n).padStart(63, '0')}\n`)),
  'before\nbefore\n',
].join('');

describeEach([OCI_FRESH], (way) => {
  test('[SC-02, RS-13, RS-17] a disk that was full has cost a session nothing, whoever was killed meanwhile', async () => {
    await using served = await ServedSessions.open({ way, diskBytes: DISK_BYTES });
    const door = served.door();
    const ballast = join(served.dataDirectory, 'ballast');
    await using hand = await door.create({ limits: LIMITS });
    using cleanUp = new DisposableStack();
    cleanUp.defer(() => rmSync(ballast, { force: true }));
    const cwd = hand.made.workspace_path;
    await hand.get('POST', '/upload', { files: [{ path: 'uploaded.txt', content: 'before\n' }] });
    await hand.print('echo before >printed.txt');
    for (let round = 0; round < howOften(2, 10); round++) {
      await hand.print('rm -rf go report many* large', { cwd });
      await hand.get('POST', '/upload', { files: [{ path: 'writer.pl', content: WRITER }] });
      const writer = await hand.begin('exec perl writer.pl', { cwd });
      // From outside, by the host's own view: of a full disk nobody can ask the server for a command.
      const [folder = 'none'] = globSync(`${served.dataDirectory}/volumes/*/${hand.made.project_id}`);
      fillWith(ballast);
      expect(await door.ask('POST', '', { project_id: 'other', runtime_type: 'shell' })).toMatchObject({
        status: 503,
        body: { code: 'SESSIONS_UNAVAILABLE' },
      });
      writeFileSync(join(folder, 'go'), '');
      if (round % 2 === 0) await served.kill();
      await waitFor('all is written', () => existsSync(join(folder, 'report')));
      expect(readFileSync(join(folder, 'report'), 'utf8')).toMatch(
        /^written then fill\d+: No space left on device/,
      );
      rmSync(ballast);
      if (round % 2 === 0) await served.start();
      expect(await hand.result(writer)).toMatchObject({ exit_code: 0 });
      expect(await hand.print(LOOK, { cwd })).toBe(WRITTEN);
      await hand.expectUsable();
    }
    await served.restart();
    expect(await hand.print(LOOK, { cwd })).toBe(WRITTEN);
    // What was refused while there was no room is granted now, and what is given back can be used by others.
    await using other = await door.create({ project_id: 'other', limits: LIMITS });
    await other.expectUsable();
  });
});
