/**
 * The agent of the tests: does what the line `script: […]` of its task says, step by step.
 * Whatever it tells the test lies in `marks/`, which the repositories of the tests ignore.
 */
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const id = process.env.MAHABHARATHA_TASK_ID;
const attempt = Number(process.env.MAHABHARATHA_ATTEMPT);
const prompt = readFileSync(0, 'utf8');
const script = JSON.parse(/^script: (.*)$/m.exec(prompt)[1]);

const read = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

function report() {
  return {
    task: id,
    attempt,
    worker: Number(process.env.MAHABHARATHA_WORKER_ID),
    branch: process.env.MAHABHARATHA_BRANCH,
    // Of the levels before, and of this one what the same worker did.
    seen: existsSync('out') ? readdirSync('out').toSorted() : [],
    dotenv: read('.env'),
    installed: read('node_modules/installed'),
    hasKey: process.env.ANTHROPIC_API_KEY !== undefined,
    dropped: process.env.NOT_FOR_WORKERS,
    goesOn: prompt.includes('An earlier attempt was put aside'),
    lastError: /^## The last attempt failed\n(.*)$/m.exec(prompt)?.[1],
    said: /^## What you said last\n(.*)$/m.exec(prompt)?.[1],
  };
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** So that the test knows that this task is being worked on, and from where on. */
function announce() {
  mkdirSync('marks', { recursive: true });
  appendFileSync(`marks/${id}`, `${attempt}\n`);
}

const STEPS = {
  write: (path, text) => write(path, text ?? `${JSON.stringify(report(), undefined, 1)}\n`),
  work: (ms) => sleep(ms),
  append: (path, text) => appendFileSync(path, text),
  wait: async (mark) => {
    announce();
    while (!existsSync(`marks/${mark}`)) await sleep(20);
  },
  /** Faster than anybody reads. */
  sayUntil: async (mark) => {
    announce();
    const line = `${'words '.repeat(1000)}\n`;
    while (!existsSync(`marks/${mark}`)) if (!process.stdout.write(line)) await once(process.stdout, 'drain');
  },
  /** With what variables have in place of `$NAME`. */
  say: (words) =>
    process.stdout.write(
      `${words.replaceAll(/\$([A-Z_]+)/g, (whole, name) => process.env[name] ?? whole)}\n`,
    ),
  waitOnce: (mark) => (attempt === 1 && !existsSync(`marks/${id}`) ? STEPS.wait(mark) : undefined),
  fill: (path, mebibytes, times) => {
    if (attempt <= times) write(path, Buffer.alloc(mebibytes * 1024 ** 2, 'x'));
  },
  /** Until nothing more goes in, or far too much has. */
  flood: (path, times) => {
    if (attempt > times) return;
    let mebibytes = 0;
    mkdirSync(dirname(path), { recursive: true });
    try {
      while (mebibytes < 512) {
        appendFileSync(path, Buffer.alloc(1024 ** 2, 'x'));
        mebibytes++;
      }
    } catch (error) {
      process.stdout.write(`flooded ${mebibytes} ${error.code}\n`);
    }
    process.exit(1);
  },
  commit: (message) => {
    execFileSync('git', ['add', '-A']);
    execFileSync('git', ['commit', '--quiet', '-m', message]);
  },
  fail: (times) => {
    if (attempt > times) return;
    process.stdout.write(`failed on purpose, attempt ${attempt}\n`);
    process.exit(1);
  },
  /** Until what there was then is kept: the next call goes on. */
  checkpoint: (words = '') => {
    if (report().goesOn) return;
    process.stdout.write(words);
    process.exit(2);
  },
  /** With a process that has left the group, and that nobody waits for. */
  leave: (marker) => spawn('setsid', ['sleep', marker], { stdio: 'ignore', detached: true }).unref(),
  hang: async (times) => {
    if (attempt > times) return;
    announce();
    process.on('SIGTERM', () => {});
    for (;;) await sleep(1000);
  },

  exit: (code, words) => {
    process.stdout.write(`${words}\n`);
    process.exit(code);
  },
};

for (const [name, ...args] of script) await STEPS[name](...args);
