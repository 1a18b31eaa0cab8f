import { afterAll, beforeAll, expect, test } from 'vitest';
import { OCI_FRESH, describeEach } from '../../support/served-by.ts';
import type { TestServer } from '../../support/server.ts';
import { openSession, startSessionServer, stopSessionServer } from '../../support/sessions.ts';

/** No network in a session: everything that is installed is in the project. */
const NPM = {
  '.npmrc': 'audit=false\nfund=false\nupdate-notifier=false\noffline=true\n',
  'local/package.json': '{"name":"local","version":"1.0.0","bin":{"local-tool":"tool.js"}}',
  'local/index.js': 'module.exports = "from the dependency";\n',
  'local/tool.js': '#!/usr/bin/env node\nconsole.log("tool ran");\n',
};
const packageJson = (version: string): string =>
  JSON.stringify({
    name: 'project',
    version,
    dependencies: { local: 'file:./local' },
    scripts: { postinstall: 'echo installed >> node_modules/.count' },
  });

const WHEEL = 'hello-1.0-py3-none-any.whl';
const MAKE_WHEEL = `
mkdir -p /tmp/w/hello-1.0.dist-info && cd /tmp/w
echo 'WORD = "from the dependency"' > hello.py
printf 'Metadata-Version: 2.1\\nName: hello\\nVersion: 1.0\\n' > hello-1.0.dist-info/METADATA
printf 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > hello-1.0.dist-info/WHEEL
printf 'hello.py,,\\nhello-1.0.dist-info/METADATA,,\\nhello-1.0.dist-info/WHEEL,,\\nhello-1.0.dist-info/RECORD,,\\n' > hello-1.0.dist-info/RECORD
python3 -m zipfile -c "$OLDPWD/${WHEEL}" hello.py hello-1.0.dist-info
cd "$OLDPWD"`;

const toFiles = (files: Readonly<Record<string, string>>) => ({
  files: Object.entries(files).map(([path, content]) => ({
    path,
    content,
    mode: content.startsWith('#!') ? '755' : '644',
  })),
});

describeEach([OCI_FRESH], (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startSessionServer(way);
  });
  afterAll(() => stopSessionServer(server, { keepsVolumes: true }));

  test('[RS-19, RS-17] npm install runs once per manifest, in this session and the next', async () => {
    const project = { project_id: 'node-project', runtime_type: 'node', setup: true };
    const count = 'wc -l < node_modules/.count';
    const first = await openSession(server, project);
    expect(await first.print('ls -A')).toBe('');
    await first.post('/upload', toFiles({ ...NPM, 'package.json': packageJson('1.0.0') }));
    const reply = await first.exec('node -p "require(\\"local\\")"; local-tool');
    expect(reply).toMatchObject({ ok: true, stdout: 'from the dependency\ntool ran\n' });
    // What the set-up prints is no output of the command.
    expect(reply.stderr).toContain('added 1 package');
    expect(await first.exec(count)).toMatchObject({ stdout: '1\n', stderr: '' });
    await first.destroy();

    // Without the lock file that npm wrote, as an IDE comes that does not take files back.
    const second = await openSession(server, project);
    await second.post('/upload', toFiles({ ...NPM, 'package.json': packageJson('1.0.0') }));
    expect(await second.exec(`${count}; local-tool`)).toMatchObject({ stdout: '1\ntool ran\n', stderr: '' });
    await second.post('/upload', toFiles({ 'package.json': packageJson('2.0.0') }));
    expect(await second.print(count)).toBe('2\n');
    const lock = await second.print('cat package-lock.json');
    await second.destroy();

    await using third = await openSession(server, project);
    const files = { ...NPM, 'package.json': packageJson('2.0.0'), 'package-lock.json': lock };
    await third.post('/upload', toFiles(files));
    expect(await third.exec(count)).toMatchObject({ stdout: '2\n', stderr: '' });
  });

  test('[RS-19] pip install runs once per manifest, into the environment of the project', async () => {
    const project = { project_id: 'python-project', runtime_type: 'python', setup: true };
    const command = 'python -c "import hello, sys; print(hello.WORD, sys.prefix)"';
    const first = await openSession(server, project);
    await first.print(MAKE_WHEEL);
    const wheel = await first.print(`base64 -w0 ${WHEEL}`);
    await first.post('/upload', toFiles({ 'requirements.txt': `./${WHEEL}\n` }));
    const reply = await first.exec(command);
    expect(reply).toMatchObject({ ok: true, stdout: `from the dependency ${first.workspace}/.venv\n` });
    expect(reply.stderr).toContain('Successfully installed hello-1.0');
    expect(await first.exec(command)).toMatchObject({ ok: true, stderr: '' });
    await first.destroy();
    await using next = await openSession(server, project);
    await next.post('/upload', {
      files: [
        { path: 'requirements.txt', content: `./${WHEEL}\n` },
        { path: WHEEL, content: wheel, encoding: 'base64' },
      ],
    });
    expect(await next.exec(command)).toMatchObject({ ok: true, stderr: '' });
  });

  test('[RS-19] a set-up that fails is the end of the command, and is tried again', async () => {
    await using session = await openSession(server, { runtime_type: 'node', setup: true });
    await session.post('/upload', toFiles({ 'package.json': '{"name":' }));
    for (const command of ['touch ran', 'touch ran again']) {
      const reply = await session.exec(command);
      expect(reply).toMatchObject({ ok: false, stdout: '', end: { reason: 'exit' } });
      expect(reply.end.message).toContain('the set-up command failed, so the command did not begin');
      expect(reply.stderr).toContain('JSON');
    }
    await session.post('/upload', toFiles({ 'package.json': '{}', '.npmrc': NPM['.npmrc'] }));
    expect(await session.print('ls')).not.toContain('ran');
  });

  test('[RS-19] without being asked, nothing is installed; a shell has nothing to install', async () => {
    for (const fields of [{ runtime_type: 'node' }, { runtime_type: 'shell', setup: true }]) {
      await using session = await openSession(server, fields);
      await session.post('/upload', toFiles({ ...NPM, 'package.json': packageJson('1.0.0') }));
      expect(await session.print('ls')).toBe('local\npackage.json\n');
    }
  });

  test.each([
    ['node', 'npm test'],
    ['python', 'python main.py'],
    ['shell', 'bash main.sh'],
  ])('[RS-19] %s: the default command is there and works', async (runtime, defaultCommand) => {
    await using session = await openSession(server, { runtime_type: runtime });
    expect(session.made.default_command).toBe(defaultCommand);
    const scripts = { test: 'echo it works' };
    const files = {
      'package.json': JSON.stringify({ scripts }),
      'main.py': 'print("it works")',
      'main.sh': 'echo it works',
    };
    await session.post('/upload', toFiles(files));
    expect(await session.print(defaultCommand)).toContain('it works\n');
  });
});
