import type { Driver, Probe } from '../../core/driver.ts';
import { requireEnforcement, unenforced } from '../../core/enforcement.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { autoDrivers, type DriverName } from '../../drivers/registry.ts';
import type { Config } from '../config/config.ts';
import { makeDriver, type DriverHooks } from './make-drivers.ts';

export interface DriverChoice {
  readonly driver: Driver;
  readonly probe: Probe & { readonly ok: true };
  /** Why this one, in a few words for people. */
  readonly reason: string;
}

export function driversToTry(config: Config, platform: string): readonly DriverName[] {
  return config.driver === 'auto' ? autoDrivers(platform) : [config.driver];
}

/** The first driver that can serve here and keeps every promise that was not given up by name. */
export async function chooseDriver(config: Config, hooks: DriverHooks): Promise<DriverChoice> {
  const problems: { readonly name: DriverName; readonly error: HotcellError }[] = [];
  for (const name of driversToTry(config, process.platform)) {
    try {
      const driver = await makeDriver(name, config, hooks);
      const probe = requireServing(name, await driver.probe());
      requireEnforcement(probe.enforcement, config.weaker);
      return { driver, probe, reason: toReason(config, problems) };
    } catch (error) {
      problems.push({ name, error: toProblem(name, error) });
    }
  }
  throw toError(problems);
}

function requireServing(name: DriverName, probe: Probe): Probe & { readonly ok: true } {
  if (probe.ok) return probe;
  throw new HotcellError('DRIVER_UNAVAILABLE', `the ${name} driver cannot serve: ${probe.problem}`, {
    hint: probe.remedy,
  });
}

function toProblem(name: DriverName, error: unknown): HotcellError {
  if (error instanceof HotcellError) return error;
  return new HotcellError('DRIVER_UNAVAILABLE', `the ${name} driver cannot serve: ${messageOf(error)}`, {
    cause: error,
  });
}

function toReason(config: Config, problems: readonly { readonly error: HotcellError }[]): string {
  if (config.driver !== 'auto') return 'as configured';
  const [first] = problems;
  return first === undefined ? 'auto: the first choice here' : `auto: ${first.error.message}`;
}

/**
 * One problem is told as it is, and so is that of a driver that works but for a promise. Of several the first is what
 * most people want mended, and the others follow.
 */
function toError(problems: readonly { readonly error: HotcellError }[]): HotcellError {
  const [first, ...others] = problems.map(({ error }) => error);
  if (first === undefined)
    return new HotcellError('DRIVER_UNAVAILABLE', 'there is no driver for this system');
  if (others.length === 0) return first;
  const nearest = [first, ...others].find(({ code }) => code === 'POLICY_UNENFORCEABLE');
  const told = nearest === undefined ? [first, ...others] : [nearest];
  return new HotcellError(nearest?.code ?? first.code, told.map(({ message }) => message).join('; '), {
    hint: [first, ...others].map(({ hint }) => hint).join('\n'),
    cause: first,
  });
}

/** What `doctor` says of a driver that cannot even be set up, such as one with a broken setting. */
export async function probeDriver(name: DriverName, config: Config, hooks: DriverHooks): Promise<Probe> {
  try {
    return await (await makeDriver(name, config, hooks)).probe();
  } catch (error) {
    const { message, hint } = toProblem(name, error);
    return { ok: false, problem: message, remedy: hint };
  }
}

export function serves(probe: Probe, config: Config): boolean {
  return probe.ok && unenforced(probe.enforcement).every((promise) => config.weaker.includes(promise));
}
