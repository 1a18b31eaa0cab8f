import type { Log } from '../../core/log.ts';
import { driversWith } from '../../drivers/registry.ts';
import { networkOpener } from '../../egress/open-network.ts';
import { ImportScanner } from '../../packages/import-scanner.ts';
import { mergeSpecs, parsePackageSpec } from '../../packages/package-spec.ts';
import { chooseDriver } from '../drivers/choose-driver.ts';
import type { Config } from '../config/config.ts';
import { openMachineGate } from '../machine-gate.ts';
import { openNpmPackages } from '../open-packages.ts';
import type { WorkbenchTools } from './open-workbenches.ts';
import { SYSTEM_CLOCK } from '../system-clock.ts';
import { RUNNER_IMAGE } from '../images/runner-images.ts';

/** What the mode is by its nature, where we are not root: confined processes of whoever started the server. */
const CONFINED_CONCEDES = ['identity'] as const;
const HOW_TO_ALLOW = 'The tool grant_permission allows hosts, paths and methods.';

/** The real parts behind workbenches. Nothing is asked of the machine before it is needed. */
export function makeWorkbenchTools(config: Config, log: Log): WorkbenchTools {
  const gate = openMachineGate(config, log);
  const scanner = new ImportScanner();
  return {
    imports: {
      scan: (code, options) => scanner.scan(code, options),
      warmUp: () => scanner.warmUp(),
      merge: (names, found) => mergeSpecs([...names.map(parsePackageSpec), ...found]),
    },
    makeNetwork: ({ traits }) =>
      networkOpener(traits.confines, {
        gate: () => gate.get(),
        clock: SYSTEM_CLOCK,
        log,
        howToAllow: HOW_TO_ALLOW,
      }),
    openPackages: (driver) =>
      openNpmPackages(config, {
        driver,
        gate,
        log,
        ...(driver.traits.images ? { image: RUNNER_IMAGE } : {}),
      }),
    chooseConfined: () => {
      const [driver = 'auto'] = driversWith(({ confines }) => confines === 'commands');
      const weaker = [...config.weaker, ...CONFINED_CONCEDES];
      return chooseDriver(
        { ...config, driver, weaker },
        { log, onProgress: (text) => log.debug({ text }, 'driver progress') },
      );
    },
    close: async () => {
      await scanner.close();
      await gate.close();
    },
  };
}
