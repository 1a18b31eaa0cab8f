import type { DriverTraits } from '../core/driver.ts';
import { whyNoVolumes } from '../drivers/volumes/probe-volumes.ts';

/** Why workspaces of sessions are in the memory of their cells; undefined where they are on disk. */
export function whyNotOnDisk(traits: DriverTraits | undefined): string | undefined {
  if (traits?.hostFolders === false)
    return 'the engine is on another machine and does not see the folders of this one';
  return whyNoVolumes();
}
