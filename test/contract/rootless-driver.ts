import { fileURLToPath } from 'node:url';
import { PROMISES } from '../../src/core/enforcement.ts';
import type { Log } from '../../src/core/log.ts';
import { OciDriver } from '../../src/drivers/oci/driver.ts';

/** One that keeps what it is told, a line each. */
export function makeLog(): { readonly log: Log; readonly said: string[] } {
  const said: string[] = [];
  const say = (fields: object, words: string): void => void said.push(`${words} ${JSON.stringify(fields)}`);
  return { log: { debug: () => {}, info: say, warn: say, error: say }, said };
}

/** Of somebody who is not root, who has to give up what only root can have. */
export function makeOciDriver(stateDirectory: string, log: Log): OciDriver {
  return new OciDriver({
    runtime: 'crun',
    stateDirectory,
    rootfs: undefined,
    guest: fileURLToPath(new URL('../../guest', import.meta.url)),
    tools: [],
    weaker: PROMISES,
    log,
  });
}
