import type { DriverTraits } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import { APPLE } from './apple/kind.ts';
import { DOCKER } from './docker/kind.ts';
import { OCI } from './oci/kind.ts';
import { PRELOAD } from './preload/kind.ts';
import { SUBPROCESS } from './subprocess/kind.ts';

/** Every driver there is, in the order in which `auto` tries them. Nobody else knows them by name. */
const KINDS = {
  oci: OCI,
  apple: APPLE,
  docker: DOCKER,
  preload: PRELOAD,
  subprocess: SUBPROCESS,
};

export type DriverName = keyof typeof KINDS;
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table above, which is not empty
export const DRIVER_NAMES = Object.keys(KINDS) as [DriverName, ...DriverName[]];

type Shapes = { [Name in DriverName]: (settings: (typeof KINDS)[Name]['settings']) => void }[DriverName];
type AllSettings = Shapes extends (settings: infer All) => void ? All : never;

/** What the drivers add to the configuration. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all of them in one, as the type says
export const DRIVER_SETTINGS = Object.assign(
  {},
  ...Object.values(KINDS).map(({ settings }) => settings),
) as AllSettings;

/** How to make it. The configuration has the settings of all of them, so each finds its own. */
export function kindOf(name: string): (typeof KINDS)[DriverName] {
  const known = DRIVER_NAMES.find((one) => one === name);
  if (known === undefined) throw new HotcellError('INTERNAL', `there is no driver ${name}`);
  return KINDS[known];
}

/** Those that are like this, in their order. */
export function driversWith(is: (traits: DriverTraits) => boolean): DriverName[] {
  return DRIVER_NAMES.filter((name) => is(KINDS[name].traits));
}

/** Those that `auto` tries on this system, best first. */
export function autoDrivers(platform: string): DriverName[] {
  return DRIVER_NAMES.filter((name) => {
    const { auto } = kindOf(name);
    return auto === 'anywhere' || (auto !== 'never' && auto.some((system) => system === platform));
  });
}

/** For people: what `auto` is where. */
export function describeAuto(): string {
  const systems = Object.entries({ Linux: 'linux', macOS: 'darwin' });
  const firsts = systems.map(([title, platform]) => `${autoDrivers(platform)[0] ?? 'none'} on ${title}`);
  return `${firsts.join(', ')}, where they work, else ${autoDrivers('').join(', ')}`;
}

/**
 * Those whose cells can be workers, behind walls. Images first: what the agent needs is in one, and with an image that
 * is there nothing has to be installed.
 */
export function workerDrivers(): DriverName[] {
  const isWalled = ({ workers, confines }: DriverTraits): boolean => workers && confines === 'cells';
  return [
    ...driversWith((traits) => isWalled(traits) && traits.images),
    ...driversWith((traits) => isWalled(traits) && !traits.images),
  ];
}

/** What makes workers that are plain processes. */
export function plainDriver(): DriverName {
  const [plain] = driversWith(({ workers, confines }) => workers && confines === 'nothing');
  if (plain === undefined) throw new HotcellError('INTERNAL', 'no driver makes plain processes');
  return plain;
}
