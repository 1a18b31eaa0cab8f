import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../support/run-command.ts';

export const FEATURE = 'bench';

/** The same amount of work every time: hashes, and a file now and then, as a build or a test run would do it. */
const AGENT = `
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
const rounds = Number(process.argv[2]);
const id = process.env.MAHABHARATHA_TASK_ID;
mkdirSync('out', { recursive: true });
let digest = Buffer.alloc(1 << 20, id);
for (let round = 0; round < rounds; round++) {
  digest = Buffer.concat([createHash('sha256').update(digest).digest(), digest.subarray(32)]);
  if (round % 50 === 0) writeFileSync(\`out/\${id}.txt\`, createHash('sha256').update(digest).digest('hex'));
}
`;

export interface Size {
  readonly levels: number;
  readonly tasks: number;
  readonly rounds: number;
}

/** A repository with a graph of equal tasks; on disk, where people have theirs. */
export async function makeRepository(
  stack: AsyncDisposableStack,
  { levels, tasks, rounds }: Size,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-bench-fleet-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, '.gsd/specs', FEATURE), { recursive: true });
  mkdirSync(join(folder, '.mahabharatha'), { recursive: true });
  writeFileSync(join(folder, 'agent.mjs'), AGENT);
  const list = Array.from({ length: levels * tasks }, (_, index) => {
    const id = `T-${index}`;
    const level = Math.floor(index / tasks) + 1;
    return {
      id,
      title: `task ${index}`,
      level,
      files: { create: [`out/${id}.txt`] },
      verification: { command: `test -s out/${id}.txt` },
    };
  });
  const graph = { feature: FEATURE, tasks: list };
  writeFileSync(join(folder, '.gsd/specs', FEATURE, 'task-graph.json'), JSON.stringify(graph));
  const config = `agent: { command: node, args: [agent.mjs, '${rounds}'] }\nnetwork: { allow: [] }\nresources: { worktree_disk: 256m }\n`;
  writeFileSync(join(folder, '.mahabharatha/config.yaml'), config);
  for (const words of [
    ['init', '-q', '-b', 'main'],
    ['add', '-A'],
    ['-c', 'user.name=bench', '-c', 'user.email=bench@example.invalid', 'commit', '-q', '-m', 'begin'],
  ]) {
    const { code, stderr } = await runCommand(['git', ...words], { cwd: folder });
    if (code !== 0) throw new Error(`git failed: ${stderr}`);
  }
  return folder;
}

/** How many rounds of the agent's work take about so long here. */
export async function calibrate(stack: AsyncDisposableStack, node: string, seconds: number): Promise<number> {
  const folder = await makeRepository(stack, { levels: 1, tasks: 1, rounds: 1 });
  const trial = 500;
  const env = { MAHABHARATHA_TASK_ID: 'T-0' };
  const time = async (rounds: number): Promise<number> =>
    (await runCommand([node, 'agent.mjs', String(rounds)], { cwd: folder, env })).ms;
  const empty = await time(0);
  return Math.max(1, Math.round((trial * (seconds * 1000 - empty)) / ((await time(trial)) - empty)));
}
