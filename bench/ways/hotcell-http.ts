import { helloIn, requireHello, type LanguageName } from '../support/hello.ts';
import type { HotcellServer } from '../server/hotcell-server.ts';
import type { Way, WayName } from './way.ts';

export interface HotcellWay extends Way {
  /** Answers by what the receipt said of the cell. */
  readonly cells: { warm: number; cold: number };
}

/** A request to a real server over a connection that is kept. Its cells are as they ship, limits included. */
export function makeHotcellWay(
  name: WayName,
  server: HotcellServer,
  languages: readonly LanguageName[],
): HotcellWay {
  const bodies = new Map(
    languages.map((language) => [language, JSON.stringify({ code: helloIn(language) })]),
  );
  const cells = { warm: 0, cold: 0 };
  return {
    name,
    languages: new Set(languages),
    cells,
    async hello(language) {
      const startedAt = performance.now();
      const { status, text } = await server.client.post(`/execute/${language}`, bodies.get(language) ?? '');
      const ms = performance.now() - startedAt;
      if (status !== 200) throw new Error(`${name} ${language}: ${status} ${text}`);
      const reply = JSON.parse(text) as { stdout: string; exit_code: number; receipt: { warm: boolean } };
      requireHello(`${name} ${language}`, { stdout: reply.stdout, code: reply.exit_code });
      cells[reply.receipt.warm ? 'warm' : 'cold']++;
      return ms;
    },
  };
}
