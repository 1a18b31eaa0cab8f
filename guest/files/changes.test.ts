import assert from 'node:assert/strict';
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { IGNORED_FOLDERS, Snapshot, diffSnapshots } from '../../src/workspace/snapshot.ts';
import { CLOCKS, file, withWorkspace, type TestWorkspace } from './harness.ts';

async function changesOf(box: TestWorkspace, script: string): Promise<string[]> {
  const before = await box.workspace.snapshot();
  await box.sh(script);
  return diffSnapshots(before, await box.workspace.snapshot()).map(({ path, change }) => `${change} ${path}`);
}

describe('snapshots', () => {
  test('[RS-10] tell what commands made, changed and removed', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([
        file('kept', 'k'),
        file('edited', 'e'),
        file('moved', 'm'),
        file('d/gone', 'g'),
      ]);
      const script =
        'echo new >>edited; mv moved d/here; rm d/gone; mkdir -p out/deep; echo x >out/deep/file; ln -s kept link';
      expect(await changesOf(box, script)).toEqual([
        'deleted d/gone',
        'added d/here',
        'modified edited',
        'added link',
        'deleted moved',
        'added out/deep/file',
      ]);
      expect(await changesOf(box, 'true')).toEqual([]);
      expect(await changesOf(box, 'chmod +x kept')).toEqual(['modified kept']);
    }));

  test('[RS-10] give size and mode, of deleted files the last ones', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('old', '12345', 0o600)]);
      const before = await box.workspace.snapshot();
      await box.sh('rm old; printf 123 >new; chmod 755 new');
      expect(diffSnapshots(before, await box.workspace.snapshot())).toEqual([
        { path: 'new', change: 'added', size: 3, mode: 0o755 },
        { path: 'old', change: 'deleted', size: 5, mode: 0o600 },
      ]);
    }));

  test.each(CLOCKS)('[RS-10] miss no change, however soon it follows: %s', (_, options) =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('quick', '0000')]);
      const path = join(box.root, 'quick');
      let before = await box.workspace.snapshot();
      for (let round = 0; round < 50; round++) {
        const { atime, mtime } = statSync(path);
        writeFileSync(path, String(round).padStart(4, '0'));
        utimesSync(path, atime, mtime);
        const after = await box.workspace.snapshot();
        expect(diffSnapshots(before, after).map((change) => change.path)).toEqual(['quick']);
        before = after;
      }
    }, options),
  );

  test.each(IGNORED_FOLDERS)('[RS-10] pass over %s, wherever it is', (name) =>
    withWorkspace(async (box) => {
      const script = `mkdir -p ${name} a/${name}/b c; echo x >${name}/f; echo x >a/${name}/b/f; echo x >c/${name}`;
      // A file of that name is a file like others.
      expect(await changesOf(box, script)).toEqual([`added c/${name}`]);
    }),
  );

  test('[RS-10] follow no link, and survive being written down', () =>
    withWorkspace(async (box) => {
      await box.sh(
        `ln -s /etc etc; ln -s . self; mkfifo pipe; touch "$(printf 'bad\\377')"; mkdir shut; touch shut/x; chmod 000 shut`,
      );
      const snapshot = await box.workspace.snapshot();
      expect([...snapshot.files.keys()].filter((path) => path !== 'shut/x')).toEqual([
        'bad\ufffd',
        'etc',
        'pipe',
        'self',
      ]);
      const again = Snapshot.read(JSON.stringify(snapshot));
      assert.ok(again !== undefined);
      expect(diffSnapshots(again, await box.workspace.snapshot())).toEqual([]);
      expect(JSON.stringify(again)).toBe(JSON.stringify(snapshot));
      await box.sh('chmod 755 shut');
    }));

  test('[RS-10] of files that vanish while they are taken are whole all the same', () =>
    withWorkspace(async (box) => {
      await box.workspace.write([file('stay', 's')]);
      const churn = box.sh('for i in $(seq 300); do mkdir -p t$i/u; echo x >t$i/u/v; rm -r t$i; done');
      const state = { isDone: false };
      void churn.finally(() => (state.isDone = true));
      let taken = 0;
      while (!state.isDone) {
        expect((await box.workspace.snapshot()).files.has('stay')).toBe(true);
        taken++;
      }
      await churn;
      expect(taken).toBeGreaterThan(3);
      expect(readFileSync(join(box.root, 'stay'), 'utf8')).toBe('s');
    }));
});
