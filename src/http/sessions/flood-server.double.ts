import type { OutputEvent } from '../../sessions/api.ts';
import { ScriptedServer } from '../scripted-server.double.ts';

/** A server of its own process, so that its memory can be told from that of the test: its command writes without end. */
const TOTAL_BYTES = Number(process.argv[2]);
const LINES = Buffer.from(`${'x'.repeat(62)}€\n`.repeat(1000));

const server = await ScriptedServer.start();
const exec = server.sessions.session.addExec();
let produced = 0;
let largest = 0;

exec.follow = async function* follow(_from, signal): AsyncGenerator<OutputEvent> {
  while (produced < TOTAL_BYTES && !signal.aborted) {
    const from = produced;
    produced += LINES.length;
    largest = Math.max(largest, process.memoryUsage.rss());
    yield await Promise.resolve({ type: 'stdout' as const, from, bytes: LINES });
  }
  exec.end();
  yield { type: 'exit', from: produced, result: await exec.result };
};

process.on('message', () => process.send?.({ port: server.port, produced, largest }));
process.on('disconnect', () => process.exit(0));
process.send?.({ port: server.port, produced, largest: process.memoryUsage.rss() });
