import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { OCI_FRESH } from '../../support/served-by.ts';
import { TestServer, dataDirectoryOf, makeStateDirectory, removeFolders } from '../../support/server.ts';
import { clearSessions, describeSessions, siteOf } from '../../support/session-remains.ts';
import { TestSession, openSession } from '../../support/sessions.ts';

test('[RS-22, RS-13] a folder behind a link: bounded, found again after kill -9, and nothing is left', async () => {
  const stateDirectory = makeStateDirectory();
  const link = `${stateDirectory}-link`;
  mkdirSync(dataDirectoryOf(stateDirectory), { mode: 0o700 });
  symlinkSync(dataDirectoryOf(stateDirectory), link);
  const start = (): Promise<TestServer> =>
    TestServer.start({
      way: OCI_FRESH,
      stateDirectory,
      env: { HOTCELL_SESSIONS_DIR: link },
      args: ['--set', 'pool.size=0'],
    });
  try {
    await using first = await start();
    const session = await openSession(first, { limits: { disk_mb: 16 } });
    await session.print('echo work > file');
    await first.stop('SIGKILL');

    await using second = await start();
    const found = new TestSession(second, session.made);
    expect(await found.print('cat file')).toBe('work\n');
    expect((await found.exec('head -c 20m /dev/zero > large')).end.reason).toBe('disk');
    // One that shares the folder finds the mount that is there.
    const beside = await openSession(second, { project_id: session.made.project_id });
    expect(await beside.print('cat file')).toBe('work\n');
    await beside.destroy();
    await found.destroy();
    expect(await second.stop()).toBe(0);
    expect(await describeSessions(siteOf(stateDirectory, 'oci'))).toEqual([]);
  } finally {
    await clearSessions(siteOf(stateDirectory, 'oci'));
    removeFolders(stateDirectory);
    rmSync(link, { force: true });
  }
});
