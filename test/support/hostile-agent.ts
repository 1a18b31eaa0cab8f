/**
 * The hostile agent. It and its neighbours `hostile-*-attack.ts` are copied into the repository of a test, and run in cells
 * by whatever node is there: they import nothing but node, and what they find goes into `out/<task>.json`.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { breakOut, writeEverywhere } from './hostile-break-attack.ts';
import { bomb, fill, leaveDaemons } from './hostile-bomb-attack.ts';
import { graft, poison, twist } from './hostile-git-attack.ts';
import { lookAround, readSecret, type Plan } from './hostile-look-attack.ts';
import { reachOut } from './hostile-network-attack.ts';
import { useCredentials } from './hostile-credentials-attack.ts';

const plan = JSON.parse(readFileSync('hostile.json', 'utf8')) as Plan;
const task = process.env['MAHABHARATHA_TASK_ID'] ?? '';
const attempt = Number(process.env['MAHABHARATHA_ATTEMPT'] ?? '1');
const round = process.env['MAHABHARATHA_ROUND'] ?? '1';

mkdirSync('.state', { recursive: true });
mkdirSync('out', { recursive: true });
const [kind = ''] = task.split('-');
const report = await perform(kind);
mkdirSync('out', { recursive: true });
writeFileSync(`out/${task}.json`, `${JSON.stringify(report ?? { task, attempt, round })}\n`);
// Whatever still waits.
process.exit(0);

async function perform(what: string): Promise<unknown> {
  switch (what) {
    case 'look':
      return lookAround(plan);
    case 'break':
      return { calls: breakOut(), writes: writeEverywhere(plan) };
    case 'poison':
      return poison(plan, attempt);
    case 'twist':
      return twist(plan, attempt);
    case 'graft':
      return graft(attempt);
    case 'bomb':
      return bomb();
    case 'fill':
      return { filled: fill() };
    case 'daemon':
      return leaveDaemons();
    case 'network':
      return reachOut(plan);
    case 'credentials':
      return useCredentials(plan);
    case 'neighbour':
      return beNeighbour();
    case 'victim':
      // Only the second orchestrator lives to see the end.
      if (round === '1') await new Promise<never>(() => setInterval(() => {}, 1000));
      return undefined;
    default:
      // There is room for it, whatever others have done.
      for (const folder of ['/tmp', process.env['HOME'] ?? ''])
        writeFileSync(`${folder}/room`, Buffer.alloc(4 * 1024 * 1024));
      return undefined;
  }
}

/** Has a secret of its own wherever one can be, until somebody says that it is enough. */
async function beNeighbour(): Promise<undefined> {
  const secret = `${readSecret(plan)}-neighbour`;
  const child = spawn('sleep', ['600'], { env: { ...process.env, SECRET: secret }, argv0: secret });
  for (const file of ['.state/secret', '/tmp/secret', `${process.env['HOME']}/secret`, '/git/secret'])
    writeFileSync(file, secret);
  for (;;) {
    try {
      readFileSync('.state/go');
      break;
    } catch {
      await sleep(50);
    }
  }
  child.kill('SIGKILL');
  // What is in its worktree and git folder is for the next task of the same worker to see; the rest is not.
  for (const file of ['.state/secret', '/git/secret']) rmSync(file);
  return undefined;
}
