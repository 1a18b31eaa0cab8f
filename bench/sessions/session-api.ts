import type { HotcellServer } from '../server/hotcell-server.ts';

/** As much of the wire as is measured. */
export async function createSession(server: HotcellServer, project: string): Promise<string> {
  const reply = await ask(server, '/v1/sessions', { project_id: project, runtime_type: 'shell' });
  return String(reply['session_id']);
}

export async function destroySession(server: HotcellServer, id: string): Promise<void> {
  const { status, text } = await server.client.send('DELETE', `/v1/sessions/${id}`);
  if (status !== 200) throw new Error(`DELETE of a session: ${status} ${text}`);
}

export async function execute(server: HotcellServer, id: string, command: string): Promise<void> {
  const reply = await ask(server, `/v1/sessions/${id}/exec`, { command });
  if (reply['ok'] !== true) throw new Error(`${command}: ${JSON.stringify(reply)}`);
}

export async function ask(
  server: HotcellServer,
  path: string,
  body: unknown,
): Promise<Record<string, unknown>> {
  const { status, text } = await server.client.send('POST', path, JSON.stringify(body));
  if (status >= 300) throw new Error(`${path}: ${status} ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}
