import { fillRequest, type Cell, type CellSpec } from '../../core/cell.ts';
import type { DriverTraits, Probe } from '../../core/driver.ts';
import { enforcedBy, requireEnforcement } from '../../core/enforcement.ts';
import { HostDriver } from '../process/host-driver.ts';
import type { Instance } from '../process/instance.ts';
import { killMarked } from '../process/marked-processes.ts';
import { refuseSpec, refuseTerminal } from '../refuse-spec.ts';
import { SubprocessCell } from './cell.ts';
import { SUBPROCESS } from './kind.ts';

const RUNTIME = 'UNSAFE plain processes of the host';

/** Not a security boundary: time and output are watched, everything else is trusted. */
export const ENFORCEMENT = enforcedBy('nobody');

/** Plain processes of this host, for code that is trusted anyway. UNSAFE, and asked for by name only. */
export class SubprocessDriver extends HostDriver<SubprocessCell> {
  readonly name = 'subprocess';
  readonly traits: DriverTraits = SUBPROCESS.traits;

  probe(): Promise<Probe> {
    if (process.platform !== 'linux') {
      return Promise.resolve({
        ok: false,
        problem: 'the subprocess driver needs Linux',
        remedy: 'Run Hotcell on Linux.',
      });
    }
    return Promise.resolve({
      ok: true,
      runtime: RUNTIME,
      enforcement: ENFORCEMENT,
      notes: [{ text: 'no isolation: programs can do what the server can do' }],
    });
  }

  async create(spec: CellSpec): Promise<Cell> {
    refuseSpec(spec, this);
    requireEnforcement(ENFORCEMENT, this.options.weaker);
    const site = await this.site();
    const place = await this.makeCellFolder(site, spec);
    return this.keep(
      new SubprocessCell({
        id: place.id,
        name: spec.name,
        workdir: place.workdir,
        isolation: { driver: this.name, runtime: RUNTIME, enforcement: ENFORCEMENT },
        mark: `${site.instance.id}-${place.id}`,
        fill: (request) => {
          refuseTerminal(request, this);
          return fillRequest(request, place.places, place.variables);
        },
        main: spec.main,
        cleanUp: () => this.removeCellFolder(place),
      }),
    );
  }

  protected async endLeft({ id }: Instance): Promise<void> {
    await killMarked(`${id}-`);
  }
}
