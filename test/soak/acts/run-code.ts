import assert from 'node:assert/strict';
import { StreamableHTTPClientTransport, type Client } from '@modelcontextprotocol/client';
import { makeClient, runToEnd } from '../../support/mcp-client.ts';
import { Refusal } from '../troubles.ts';
import type { World } from '../world.ts';
import type { Perform } from './act.ts';

const clients = new WeakMap<object, Promise<Client>>();

/** One client for each life of the server. */
async function clientOf(world: World): Promise<Client> {
  const server = await world.up();
  const known = clients.get(server);
  if (known !== undefined) return known;
  const connecting = connect(world, server.url);
  clients.set(server, connecting);
  connecting.catch(() => clients.delete(server));
  return connecting;
}

async function connect(world: World, url: string): Promise<Client> {
  const client = makeClient({ era: 'modern' });
  world.atEndOfServer(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  return client;
}

/** Code of an AI client, in both languages. */
export const runCode: Perform = async (world, { number, dice }) => {
  const client = await clientOf(world);
  const given =
    dice < 0.5
      ? { code: `const n: number = ${number}; console.log(n * 2)` }
      : { code: `print(${number} * 2)`, language: 'python' };
  const { reply, failed, text } = await runToEnd(client, given);
  if (failed) throw new Refusal('run_code', 200, codeOf(text), text);
  assert.deepEqual(
    { status: reply.status, stdout: reply.stdout },
    { status: 'ok', stdout: `${number * 2}\n` },
  );
  world.ledger.noteAnswer();
};

/** Errors of tools are told in words that begin with or hold their code. */
function codeOf(text: string): string {
  return (
    /\b[A-Z]{3,}(?:_[A-Z]+)+\b/.exec(text)?.[0] ?? (/\bcell_lost|lost\b/.test(text) ? 'cell_lost' : text)
  );
}
