import type { Clock } from '../core/clock.ts';
import type { Driver } from '../core/driver.ts';
import type { Log } from '../core/log.ts';
import type { OpenNetwork } from '../egress/cell-network.ts';
import type { AuditLog } from '../policy/audit-log.ts';
import type { RateLimit } from '../policy/rate-limit.ts';
import type { SessionSettings } from './settings.ts';
import type { Volumes } from './volumes.ts';

/** What sessions are made with. */
export interface SessionsOptions {
  readonly settings: SessionSettings;
  /** Where they are kept. */
  readonly dir: string;
  /** A record of this process, for whoever wants it to stop. */
  readonly server: string;
  readonly driver: Driver;
  readonly volumes: Volumes;
  /** Folders are given to cells by an engine, which may not see what is mounted on our side. */
  readonly engineMounts: boolean;
  readonly openNetwork: OpenNetwork;
  /** Authorities that programs in sessions with a network trust, in PEM. */
  readonly caBundle: Uint8Array | undefined;
  /** Names of the rules that refuse commands. */
  readonly rules: readonly string[];
  readonly rateLimit: Pick<RateLimit, 'take'>;
  readonly audit: Pick<AuditLog, 'append'> | undefined;
  /** Names this boot of the host: what it is after another one, no cell has survived. */
  readonly bootId: string;
  readonly clock: Clock;
  readonly log: Log;
}
