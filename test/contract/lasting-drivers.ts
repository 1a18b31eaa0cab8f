import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { CellSpec, CellWorkspace } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { DockerDriver } from '../../src/drivers/docker/driver.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { OciDriver } from '../../src/drivers/oci/driver.ts';
import type { RuntimeName } from '../../src/drivers/oci/runtime.ts';
import { BASE_IMAGE } from '../support/base-image.ts';
import { MiB } from './cells.ts';

/** A driver in words, so that another process can make one like it. */
export type DriverWords =
  | { readonly kind: 'oci'; readonly runtime: RuntimeName; readonly stateDirectory: string }
  | {
      readonly kind: 'docker';
      readonly runtime: string;
      readonly stateDirectory: string;
      readonly socket: string;
    };

const GUEST = fileURLToPath(new URL('../../guest', import.meta.url));

export function toDriver(words: DriverWords): Driver {
  const { stateDirectory } = words;
  const common = { stateDirectory, guest: GUEST, weaker: [], log: SILENT_LOG };
  if (words.kind === 'oci')
    return new OciDriver({ ...common, runtime: words.runtime, rootfs: undefined, tools: [] });
  return new DockerDriver({
    ...common,
    endpoint: findEndpoint({ host: `unix://${words.socket}` }),
    runtime: words.runtime,
    recipes: fileURLToPath(new URL('../../images', import.meta.url)),
    languages: {},
    onProgress: () => {},
  });
}

export const DISK_BYTES = 32 * MiB;
/** A host id that nobody has. */
const OWNER = 0x70000101;

export function lastingSpec(store: string, workspace?: CellWorkspace): CellSpec {
  return {
    name: `contract-session-${randomBytes(2).toString('hex')}`,
    kind: 'session',
    limits: { ...DEFAULT_LIMITS, diskBytes: DISK_BYTES },
    image: { name: BASE_IMAGE, recipe: undefined },
    lasting: { store },
    workspace: workspace ?? { folder: undefined, owner: OWNER },
  };
}
