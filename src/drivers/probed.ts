import type { Probe } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';

/** Whether a driver can serve here, and if so, what it has found to work with. */
export type Probed<Host> =
  | { readonly ok: true; readonly probe: Extract<Probe, { ok: true }>; readonly host: Host }
  | { readonly ok: false; readonly probe: Extract<Probe, { ok: false }>; readonly host: undefined };

export function unusable(problem: string, remedy: string): Extract<Probed<never>, { ok: false }> {
  return { ok: false, probe: { ok: false, problem, remedy }, host: undefined };
}

export function requireHost<Host>(probed: Probed<Host>): Extract<Probed<Host>, { ok: true }> {
  if (probed.ok) return probed;
  const { problem, remedy } = probed.probe;
  throw new HotcellError('DRIVER_UNAVAILABLE', problem, { hint: remedy });
}
