import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { CellSpec, LeftCell } from '../../core/cell.ts';
import type { DriverTraits, Probe } from '../../core/driver.ts';
import { HotcellError } from '../../core/errors.ts';
import { Limits } from '../../core/limits.ts';
import { SILENT_LOG } from '../../core/log.ts';
import type { ImageShelf } from '../images/image-shelf.ts';
import { EngineDriver, type EngineCell, type EngineSite } from './engine-driver.ts';

/** An engine that starts containers, loses the answer to that, and is away for some calls. */
class AwayEngine extends EngineDriver<EngineCell, EngineSite> {
  readonly name = 'away';
  readonly traits: DriverTraits = {
    confines: 'cells',
    images: true,
    sharesByDefault: false,
    terminals: false,
    workers: false,
    hostFolders: false,
  };
  readonly containers = new Set<string>();
  /** How many of the next calls it does not answer. */
  away = 0;

  constructor() {
    super({ log: SILENT_LOG, onProgress: () => {} });
  }

  probe(): Promise<Probe> {
    return Promise.resolve({ ok: false, problem: 'none', remedy: 'none' });
  }
  orphans(): Promise<LeftCell[]> {
    return Promise.resolve([]);
  }
  reclaim(): Promise<string[]> {
    return Promise.resolve([]);
  }
  protected openSite(): Promise<EngineSite> {
    const images = { obtain: () => Promise.resolve('image') } as unknown as ImageShelf;
    return Promise.resolve({ images, watch: { problem: undefined } });
  }
  protected closeSite(): Promise<void> {
    return Promise.resolve();
  }
  protected async start(site: EngineSite): Promise<EngineCell> {
    this.containers.add('c0ffee');
    await this.remove(site, 'c0ffee').catch(() => {});
    throw new HotcellError('DRIVER_UNAVAILABLE', 'socket hang up');
  }
  protected removeContainer(_site: EngineSite, id: string): Promise<void> {
    if (this.away-- > 0) return Promise.reject(new Error('ECONNREFUSED'));
    this.containers.delete(id);
    return Promise.resolve();
  }
  protected toCellError(error: unknown): unknown {
    return error;
  }
}

const SPEC: CellSpec = {
  name: 'cell',
  kind: 'run',
  limits: Limits.parse({}),
  image: { name: 'image', recipe: undefined },
};

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('[SC-02] a container that cannot be removed while nobody notices that the engine is away goes a moment later', async () => {
  const engine = new AwayEngine();
  engine.away = 3;
  await expect(engine.create(SPEC)).rejects.toMatchObject({ code: 'DRIVER_UNAVAILABLE' });
  expect([...engine.containers]).toEqual(['c0ffee']);
  await vi.advanceTimersByTimeAsync(1000);
  expect([...engine.containers]).toEqual(['c0ffee']);
  await vi.advanceTimersByTimeAsync(2000);
  expect([...engine.containers]).toEqual([]);
  await engine.close();
  expect(vi.getTimerCount()).toBe(0);
});
