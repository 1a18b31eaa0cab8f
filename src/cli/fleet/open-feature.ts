import type { FleetPaths } from '../../fleet/names.ts';
import type { StateStore } from '../../fleet/state/state-store.ts';
import { toPrintable } from '../../lib/printable.ts';
import type { Terminal } from '../terminal.ts';

export interface OpenFeature {
  readonly paths: FleetPaths;
  readonly store: StateStore;
}

/** The feature that a command is about, from any folder of its repository. Needs neither git nor a driver. */
export async function openFeature(named: string | undefined, terminal: Terminal): Promise<OpenFeature> {
  const [{ readFleetEnvironment }, { findRepositoryRoot }, { fleetPaths }, features, { StateStore: Store }] =
    await Promise.all([
      import('../../app/fleet/fleet-environment.ts'),
      import('../../fleet/find-root.ts'),
      import('../../fleet/names.ts'),
      import('../../fleet/state/features.ts'),
      import('../../fleet/state/state-store.ts'),
    ]);
  const root = findRepositoryRoot(process.cwd());
  const feature = features.findFeature(root, { named, variable: readFleetEnvironment().feature });
  const paths = fleetPaths(root, feature);
  let lastWarning = '';
  const onWarning = (message: string): void => {
    if (message === lastWarning) return;
    lastWarning = message;
    terminal.note(`fleet: ${toPrintable(message)}`);
  };
  return { paths, store: new Store(paths, { onWarning }) };
}
