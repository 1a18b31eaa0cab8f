'use strict';
// Preload for a hot node (`node -r`): waits for the job before the main script is opened,
// writes the script, removes its own traces and lets node go on natively.
const fs = require('node:fs');
const path = require('node:path');
const { Module } = require('node:module');

// What node reads only while it starts: such a job gets a fresh interpreter instead.
const STARTS = /^(NODE_|UV_|V8_|LC_|LANG|LD_|GLIBC_|MALLOC_|SSL_|OPENSSL_|ICU_|HOME=|NO_COLOR=|FORCE_COLOR=)/;

function fail(reason) {
  fs.writeSync(2, `hotcell: ${reason}\n`);
  process.reallyExit(70);
}

function readSome(buffer, offset, length) {
  for (;;) {
    try {
      return fs.readSync(0, buffer, offset, length, null);
    } catch (error) {
      if (error.code === 'EOF') return 0;
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function take(length) {
  const buffer = Buffer.allocUnsafeSlow(length);
  for (let offset = 0; offset < length;) {
    const got = readSome(buffer, offset, length - offset);
    if (got === 0) fail('the job frame ends early');
    offset += got;
  }
  return buffer;
}

const one = Buffer.allocUnsafeSlow(1);

function field(head = '') {
  while (!head.endsWith('\n')) {
    if (readSome(one, 0, 1) === 0) fail('the job frame ends early');
    head += String.fromCharCode(one[0]);
    if (head.length > 12) fail('bad job frame');
  }
  if (!/^\d+\n$/.test(head)) fail('bad job frame');
  return take(Number(head));
}

function many(read) {
  const number = field().toString();
  if (!/^\d+$/.test(number)) fail('bad job frame');
  return Array.from({ length: Number(number) }, read);
}

function write(file, content) {
  fs.writeFileSync(file, content, { mode: 0o644 });
}

function extra(base) {
  const name = field().toString();
  const content = field();
  if (name === '' || name.startsWith('/') || name.split('/').includes('..'))
    fail('bad path in the job frame');
  const file = path.join(base, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  write(file, content);
}

function forget() {
  process.execArgv.length = 0;
  Object.defineProperty(process, '_preload_modules', { value: [] });
  delete require.cache[__filename];
  const { _pathCache: paths } = Module;
  for (const key of Object.keys(paths)) {
    if (paths[key] === __filename) delete paths[key];
  }
}

function waitForJob() {
  const script = process.argv[1];
  // console.log needs these; loading them here takes that time off the job.
  for (const name of ['node:net', 'node:tty']) require(name);
  fs.writeSync(1, '\x06');
  if (readSome(one, 0, 1) === 0) process.reallyExit(0);
  const code = field(String.fromCharCode(one[0]));
  const args = many(() => field().toString());
  const env = many(() => field().toString());
  write(script, code);
  many(() => extra(path.dirname(script)));
  for (const entry of env) {
    const cut = entry.indexOf('=');
    process.env[entry.slice(0, cut)] = entry.slice(cut + 1);
  }
  process.argv.push(...args);
  if (env.some((entry) => STARTS.test(entry))) {
    process.execve(process.execPath, [process.argv0, ...process.argv.slice(1)], process.env);
  }
}

// Worker threads and the children of node:test inherit the preload, but not the mark: there
// is no job for them, only the traces to remove.
if (process.env.HOTCELL_BOOT !== undefined) {
  delete process.env.HOTCELL_BOOT;
  try {
    waitForJob();
  } catch (error) {
    fail(error.message);
  }
}
forget();
