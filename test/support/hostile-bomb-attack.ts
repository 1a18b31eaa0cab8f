import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, writeFileSync, writeSync } from 'node:fs';

/** Of one line of output. */
const LINE = `${'x'.repeat(65_535)}\n`;
const FLOOD_BYTES = 512 * 1024 * 1024;
/** As an argument of `sleep`, to be known by. */
export const DAEMON = '987654';

const MEMORY = 'x = []\nwhile True: x.append(bytearray(b"x" * (16 << 20)))';
const FORKS = `
import os, time
made = 0
while True:
    try:
        if os.fork() == 0:
            os.dup2(os.open('/dev/null', os.O_RDWR), 1)
            os.execvp('sleep', ['sleep', '${DAEMON}'])
        made += 1
    except OSError:
        break
print(made)
`;
const DAEMONS = `
import os, signal
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(name, signal.SIG_IGN)
            os.dup2(os.open('/dev/null', os.O_RDWR), 0)
            for fd in (1, 2): os.dup2(0, fd)
            os.execvp('bash', ['bash', '-c', 'trap "" TERM; while :; do date >> /workspace/out/late.txt; sleep ${DAEMON} & sleep 0.1; done'])
        os._exit(0)
os.wait()
`;

/** Everything at once, and all of it stays behind. A bomb that ends the whole cell is not thrown again. */
export function bomb(): object {
  const once = (name: string, act: () => unknown): unknown => {
    if (existsSync(`.state/bomb-${name}`)) return 'before';
    writeFileSync(`.state/bomb-${name}`, '');
    return act();
  };
  return {
    flood: once('flood', flood),
    memory: once('memory', () => spawnSync('python3', ['-c', MEMORY]).signal),
    forks: once('forks', () =>
      Number(
        spawnSync('python3', ['-c', FORKS], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).stdout,
      ),
    ),
    tmp: once('tmp', fill),
  };
}

function flood(): number {
  let written = 0;
  while (written < FLOOD_BYTES) {
    try {
      written += writeSync(1, LINE);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
  return written;
}

/** All of /tmp, with many files. */
export function fill(): string {
  try {
    for (;;) appendFileSync('/tmp/full', LINE);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
}

export function leaveDaemons(): object {
  const { status, stderr } = spawnSync('python3', ['-c', DAEMONS], { encoding: 'utf8' });
  return { status, stderr };
}
