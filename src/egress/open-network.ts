import type { Clock } from '../core/clock.ts';
import type { DriverTraits } from '../core/driver.ts';
import type { Log } from '../core/log.ts';
import type { OpenNetwork } from './cell-network.ts';
import type { EgressGate } from './gate.ts';
import { LoopbackNetwork } from './loopback-network.ts';
import { ProxyKey } from './proxy-key.ts';
import { RelayNetwork } from './relay-network.ts';

export interface NetworkParts {
  /** Made with the first cell that has a network. */
  gate(): Promise<EgressGate>;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
  /** What a program is told that was refused something, in a sentence; as in sessions unless given. */
  readonly howToAllow?: string;
}

/** Opens ways out of the cells of a driver, according to where it makes walls. */
export function networkOpener(confines: DriverTraits['confines'], parts: NetworkParts): OpenNetwork {
  const { clock, log } = parts;
  const say = parts.howToAllow === undefined ? {} : { howToAllow: parts.howToAllow };
  if (confines === 'commands') {
    return async (allow, _startHelper, { inject } = {}) => {
      const gate = await parts.gate();
      const key = new ProxyKey();
      const egress = gate.open(allow, { key, inject, ...say });
      try {
        return await LoopbackNetwork.open({ egress, key, variables: gate.variables(allow) });
      } catch (error) {
        egress.close();
        throw error;
      }
    };
  }
  return async (allow, startHelper, { inject } = {}) => {
    const gate = await parts.gate();
    const egress = gate.open(allow, { inject, ...say });
    const network = new RelayNetwork({ egress, clock, log, startHelper }, gate.variables(allow));
    network.open();
    return network;
  };
}
