import type { FaultKind } from '../plan.ts';
import { freezeCell, killInit, killKeeper, killRuntime, killSession } from './cells.ts';
import { dropClients, killFleet } from './clients.ts';
import { fillDisk } from './disk.ts';
import { freezeEngine, killContainer, killEngine } from './engine.ts';
import type { Harm } from './fault.ts';
import { freezeServer, killServer, stopServer } from './server.ts';

export const HARM: Readonly<Record<FaultKind, Harm>> = {
  'kill-server': killServer,
  'stop-server': stopServer,
  'freeze-server': freezeServer,
  'drop-clients': dropClients,
  'full-disk': fillDisk,
  'kill-fleet': killFleet,
  'kill-init': killInit,
  'kill-runtime': killRuntime,
  'kill-keeper': killKeeper,
  'kill-session': killSession,
  'freeze-cell': freezeCell,
  'kill-engine': killEngine,
  'freeze-engine': freezeEngine,
  'kill-container': killContainer,
};
