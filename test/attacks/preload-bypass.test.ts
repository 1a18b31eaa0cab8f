import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { layBait, type Bait } from '../support/bait.ts';
import { closePlace, describeCodePlacesAndWalls, runCode } from '../support/code-places.ts';

/**
 * Ways around a preload that were seen to work, and ways in that are easily missed. Each prints what it gets; none may get
 * the secret, reach a listener or leave a file. They run behind the hooks, which some of them never meet.
 */
const BYPASSES: Readonly<Record<string, string>> = {
  '1 Bun.fetch to the network': `await Bun.fetch('http://127.0.0.1:' + TCP).then((r) => r.text())`,
  '1 fetch of the module bun': `await (await import('bun')).fetch('http://127.0.0.1:' + TCP)`,
  '2 Bun.fetch of a file': `await (await Bun.fetch('file://' + SECRET)).text()`,
  '3 Bun.fetch over a socket': `await Bun.fetch('http://x/', { unix: SOCKET })`,
  '4 the constructor of stdout': `await new Promise((resolve, reject) => {
    const stream = new process.stdout.constructor(OUTSIDE + '/written');
    stream.on('error', reject);
    stream.end('x', resolve);
  })`,
  '5 Bun.dns': `await Bun.dns.lookup('example.org', { backend: 'c-ares' })`,
  '5 Bun.env': `JSON.stringify(Bun.env)`,
  '5 import.meta.env': `JSON.stringify(import.meta.env)`,
  '5 descriptors that were inherited': `await (async () => {
    const { ReadStream } = await import('node:tty');
    const { readSync, fstatSync } = await import('node:fs');
    const got = [];
    for (let fd = 3; fd < 64; fd++)
      try {
        const buffer = Buffer.alloc(4096);
        if (!fstatSync(fd).isFile()) continue;
        got.push(buffer.toString('latin1', 0, readSync(fd, buffer)));
        new ReadStream(fd);
      } catch {}
    return got.join();
  })()`,
  '5 the default export of ws': `await new Promise((resolve, reject) => {
    const socket = new (require('ws'))('ws://127.0.0.1:' + TCP);
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error('refused'));
  })`,
  '6 a package that nobody installed': `await import('is-odd')`,
  'text that is imported': `(await import(SECRET, { with: { type: 'text' } })).default`,
  'text that is required': `require(SECRET)`,
  'a file URL that is imported': `(await import('file://' + SECRET, { with: { type: 'text' } })).default`,
  'a worker with fresh globals': `await new Promise((resolve, reject) => {
    const code = "fetch('http://127.0.0.1:" + TCP + "').then(() => postMessage(1), (e) => postMessage(String(e)))";
    const worker = new Worker('data:text/javascript,' + encodeURIComponent(code));
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = reject;
  })`,
  'a thread with fresh globals': `await new Promise((resolve, reject) => {
    const { Worker } = require('node:worker_threads');
    const worker = new Worker("require('node:fs').writeFileSync(" + JSON.stringify(OUTSIDE + '/w') + ", 'x')", { eval: true });
    worker.on('exit', resolve);
    worker.on('error', reject);
  })`,
  'a realm with fresh globals': `new ShadowRealm().evaluate('1')`,
  'a context with fresh globals': `require('node:vm').runInNewContext('this.constructor.constructor("return process")()').env`,
  'a macro': `await import('data:text/javascript,' + encodeURIComponent(
    "import { x } from 'data:text/javascript,export function x(){}' with { type: 'macro' }; export default x()"))`,
  'the network by node:net': `await new Promise((resolve, reject) => {
    require('node:net').connect(TCP, '127.0.0.1', resolve).on('error', reject);
  })`,
  'the network by a bare Socket': `await new Promise((resolve, reject) => {
    const { Socket } = require('node:net');
    Object.getPrototypeOf(Socket.prototype);
    new Socket().on('error', reject).connect({ port: TCP, host: '127.0.0.1' }, resolve);
  })`,
  'the network by node:http': `await new Promise((resolve, reject) => {
    require('node:http').get('http://127.0.0.1:' + TCP, resolve).on('error', reject);
  })`,
  'the network by node:http2': `await new Promise((resolve, reject) => {
    require('node:http2').connect('http://127.0.0.1:' + TCP, resolve).on('error', reject);
  })`,
  'the network by undici': `await require('undici').request('http://127.0.0.1:' + TCP)`,
  'the network by Bun.connect': `await Bun.connect({ hostname: '127.0.0.1', port: TCP, socket: { data() {} } })`,
  'datagrams by node:dgram': `await new Promise((resolve, reject) => {
    const socket = require('node:dgram').createSocket('udp4');
    socket.on('error', reject);
    socket.send('x', UDP, '127.0.0.1', (error) => (error ? reject(error) : resolve()));
  })`,
  'datagrams by Bun.udpSocket': `(await Bun.udpSocket({})).send('x', UDP, '127.0.0.1')`,
  'a socket in the file system': `await new Promise((resolve, reject) => {
    require('node:net').connect(SOCKET, resolve).on('error', reject);
  })`,
  'a socket without a name in the file system': `await new Promise((resolve, reject) => {
    require('node:net').connect('\\0' + ABSTRACT, resolve).on('error', reject);
  })`,
  'a server of its own': `await new Promise((resolve, reject) => {
    require('node:net').createServer().on('error', reject).listen(0, () => reject(new Error('LISTENS')));
  })`,
  'Bun.serve': `(() => { Bun.serve({ port: 0, fetch: () => new Response('x') }); return 'LISTENS'; })()`,
  'a file by node:fs': `require('node:fs').readFileSync(SECRET, 'utf8')`,
  'a file behind a link': `await (async () => {
    const { symlinkSync, readFileSync } = await import('node:fs');
    symlinkSync(SECRET, 'link');
    return readFileSync('link', 'utf8');
  })()`,
  'a file behind a hard link': `await (async () => {
    const { linkSync, readFileSync } = await import('node:fs');
    linkSync(SECRET, 'hard');
    return readFileSync('hard', 'utf8');
  })()`,
  'a file by Bun.file': `await Bun.file(SECRET).text()`,
  'a file by Bun.mmap': `new TextDecoder().decode(Bun.mmap(SECRET))`,
  'a file by the root of the process': `require('node:fs').readFileSync('/proc/self/root' + SECRET, 'utf8')`,
  'a file as a database': `new (require('bun:sqlite').Database)(OUTSIDE + '/db').run('create table t (a)')`,
  'a file in a bundle': `await (async () => {
    const { outputs } = await Bun.build({ entrypoints: [SECRET], loader: { '.txt': 'text' } });
    return outputs[0].text();
  })()`,
  'a written file': `require('node:fs').writeFileSync(OUTSIDE + '/written', 'x')`,
  'a file written by Bun.write': `await Bun.write(OUTSIDE + '/written', 'x')`,
  'a file moved out': `await (async () => {
    const { writeFileSync, renameSync } = await import('node:fs');
    writeFileSync('inside', 'x');
    renameSync('inside', OUTSIDE + '/moved');
  })()`,
  'a folder': `require('node:fs').mkdirSync(OUTSIDE + '/folder')`,
  'a program': `Bun.spawnSync(['/bin/cat', SECRET]).stdout.toString()`,
  'a program by node:child_process': `require('node:child_process').execFileSync('/bin/cat', [SECRET], { encoding: 'utf8' })`,
  'another program instead of this one': `process.execve('/bin/cat', ['cat', SECRET], {})`,
  'the shell of Bun': `await Bun.$\`cat \${SECRET}\`.text()`,
  'native code': `(() => {
    const { dlopen, ptr } = require('bun:ffi');
    const { open, read } = dlopen('libc.so.6', {
      open: { args: ['ptr', 'int'], returns: 'int' },
      read: { args: ['int', 'ptr', 'usize'], returns: 'i64' },
    }).symbols;
    const buffer = Buffer.alloc(4096);
    read(open(ptr(Buffer.from(SECRET + '\\0')), 0), ptr(buffer), 4096);
    return buffer.toString();
  })()`,
  'a module that Node hides': `process.binding('fs').open(SECRET, 0, 0)`,
  'the variables of the server': `require('node:fs').readFileSync('/proc/' + process.ppid + '/environ', 'latin1')`,
  'the memory of the server': `require('node:fs').readFileSync('/proc/' + process.ppid + '/maps', 'latin1').slice(0, 5) + 'MAPS'`,
  'a signal to the server': `process.kill(process.ppid, 'SIGTERM') && 'SIGNALLED'`,
  'the policy': `(() => { process.env.HOTCELL_POLICY = '{"file":[{"path":"/","operations":["read"]}]}';
    return require('node:fs').readFileSync(SECRET, 'utf8'); })()`,
};

await describeCodePlacesAndWalls((place) => {
  let bait: Bait;
  beforeEach(async () => {
    bait = await layBait();
    process.env['HOTCELL_BAIT'] = bait.secret;
  });
  afterEach(async () => {
    delete process.env['HOTCELL_BAIT'];
    await bait.remove();
  });
  afterAll(() => closePlace(place));

  const names = (): string =>
    `const [SECRET, OUTSIDE, TCP, UDP, SOCKET, ABSTRACT] = ${JSON.stringify([
      bait.secretFile,
      bait.outside,
      bait.tcpPort,
      bait.udpPort,
      bait.socketPath,
      bait.abstractName,
    ])};`;

  test.each(Object.entries(BYPASSES))('[MC-02, SC-04] %s', async (_name, attack) => {
    const code = `${names()}
console.log('begun');
try { console.log('got', await (async () => (${attack}))()); } catch (error) { console.log('refused', String(error)); }
process.exit(0);`;
    const { stdout, stderr, outcome } = await runCode(place, code, { limits: { wallTimeMs: 20_000 } });
    expect(stdout).toMatch(/^begun\n/);
    expect(stdout + stderr).not.toContain(bait.secret);
    expect(stdout).not.toMatch(/LISTENS|SIGNALLED|got.*MAPS/);
    expect(bait.visitors).toEqual([]);
    expect(bait.changes()).toEqual([]);
    expect(outcome.kind).not.toBe('limit');
  });

  describe('the bait', () => {
    test('[MC-02] is there for whoever has no walls', async () => {
      const { readFileSync } = await import('node:fs');
      const { connect } = await import('node:net');
      expect(readFileSync(bait.secretFile, 'utf8')).toBe(bait.secret);
      await new Promise((resolve) => connect(bait.tcpPort, '127.0.0.1').on('close', resolve).resume());
      await new Promise((resolve) => connect(`\0${bait.abstractName}`).on('close', resolve).resume());
      expect(bait.visitors).toEqual(['tcp', 'abstract']);
    });
  });
});
