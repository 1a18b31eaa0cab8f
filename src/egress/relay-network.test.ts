import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import type { Exec, ExecRequest } from '../core/exec.ts';
import { SILENT_LOG } from '../core/log.ts';
import type { Allowed, CellNetwork } from './cell-network.ts';
import { EgressGate } from './gate.ts';
import { networkOpener } from './open-network.ts';
import { ScriptedCell } from './scripted-cell.double.ts';

const PRESETS = {
  npm: { hosts: ['packages.example'], variables: { npm_config_registry: 'https://packages.example/' } },
  pypi: { hosts: [] },
  github: { hosts: [] },
};

/** Time goes on when a test says so. */
class StepClock {
  readonly waiting: { readonly delayMs: number; task(): void }[] = [];

  after(delayMs: number, task: () => void): () => void {
    const timer = { delayMs, task };
    this.waiting.push(timer);
    return () => {
      const at = this.waiting.indexOf(timer);
      if (at !== -1) this.waiting.splice(at, 1);
    };
  }

  /** Ends every wait of that length. */
  pass(delayMs: number): void {
    const due = this.waiting.filter((timer) => timer.delayMs === delayMs);
    for (const timer of due) {
      this.waiting.splice(this.waiting.indexOf(timer), 1);
      timer.task();
    }
  }
}

const opened: CellNetwork[] = [];
afterEach(() => {
  for (const network of opened.splice(0)) network.close();
});

interface Start {
  readonly network: CellNetwork;
  readonly clock: StepClock;
  /** The relays that were started, the latest last. */
  readonly relays: ScriptedCell[];
  readonly requests: ExecRequest[];
}

async function start(
  allow: readonly Allowed[] = [],
  begin: (relay: ScriptedCell) => Promise<Exec> = (relay) => Promise.resolve(relay),
): Promise<Start> {
  const [clock, relays, requests] = [new StepClock(), new Array<ScriptedCell>(), new Array<ExecRequest>()];
  const gate = new EgressGate({ presets: PRESETS, log: SILENT_LOG });
  const open = networkOpener('cells', {
    gate: () => Promise.resolve(gate),
    clock,
    log: SILENT_LOG,
    howToAllow: 'Ask for it.',
  });
  const network = await open(allow, (request) => {
    const relay = new ScriptedCell();
    relays.push(relay);
    requests.push(request);
    return begin(relay);
  });
  opened.push(network);
  return { network, clock, relays, requests };
}

async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 100_000) throw new Error('it never came to that');
    await turn();
  }
}

async function isReady(network: CellNetwork): Promise<boolean> {
  let ready = false;
  void network.untilReady().then(() => (ready = true));
  for (let turns = 0; turns < 10; turns++) await turn();
  return ready;
}

describe('a way out through a relay in the cell', () => {
  test('[RS-15] begins by itself and is ready when the relay listens', async () => {
    const { network, relays, requests } = await start(['npm']);
    expect(requests.map(({ argv }) => argv)).toEqual([['perl', '{guest}/egress.pl']]);
    expect(await isReady(network)).toBe(false);
    relays[0]?.say('R', 0);
    await network.untilReady();
    expect(network.port).toBeUndefined();
    expect(network.variables).toMatchObject({
      http_proxy: 'http://127.0.0.1:3128',
      npm_config_registry: 'https://packages.example/',
    });
  });

  test('[RS-15] is not waited for without end', async () => {
    const { network, clock } = await start();
    expect(await isReady(network)).toBe(false);
    clock.pass(5000);
    await network.untilReady();
  });

  test('[RS-15] needs no key, keeps to the rules, and says how to be allowed more', async () => {
    const { network, relays } = await start([{ host: 'a.example', pathPattern: '/open/*' }]);
    const [relay] = relays;
    relay?.say('N', 1);
    relay?.say('D', 1, Buffer.from('GET http://a.example/secret HTTP/1.1\r\nHost: a.example\r\n\r\n'));
    const said = (): string =>
      Buffer.concat(relay?.heard('D', 1).map(({ payload }) => payload) ?? []).toString();
    await until(() => said().includes('Ask for it.'));
    expect(said()).toMatch(/^HTTP\/1\.1 403 /);
    expect(network.refusalsSince(0)).toMatchObject([{ host: 'a.example', method: 'GET', path: '/secret' }]);
  });

  test.each<[string, (relay: ScriptedCell) => Promise<Exec>]>([
    [
      'is killed',
      (relay) => {
        relay.exit();
        return Promise.resolve(relay);
      },
    ],
    ['does not start', () => Promise.reject(new Error('no'))],
  ])('[RS-15] is tried again, and not at once, when the relay %s', async (_what, begin) => {
    const { relays, clock } = await start([], begin);
    for (const count of [1, 2, 3]) {
      await until(() => clock.waiting.some(({ delayMs }) => delayMs === 500));
      expect(relays.length).toBe(count);
      clock.pass(500);
      await until(() => relays.length === count + 1);
    }
  });

  test('[RS-15] ends with its relay, which is not started again, and nobody waits any longer', async () => {
    const { network, relays, clock } = await start();
    await until(() => relays.length === 1);
    network.close();
    await network.untilReady();
    await until(() => relays[0]?.stdinClosed === true);
    clock.pass(500);
    for (let turns = 0; turns < 10; turns++) await turn();
    expect(relays.length).toBe(1);
  });

  test('[RS-15] that is closed while the relay starts ends that, too', async () => {
    const late = Promise.withResolvers<Exec>();
    const { network, relays } = await start([], () => late.promise);
    network.close();
    const [relay = new ScriptedCell()] = relays;
    late.resolve(relay);
    await until(() => relay.stdinClosed);
  });
});
