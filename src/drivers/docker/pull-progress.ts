import { toSizeText } from '../../lib/size-text.ts';
import type { EngineMessage } from './engine-messages.ts';

interface Layer {
  state: 'waiting' | 'loading' | 'loaded' | 'done';
  bytes: number;
  total: number;
}

/** Layers of an image come in parallel, and their sizes are known only when each begins: this makes one figure of it. */
export class PullProgress {
  readonly #layers = new Map<string, Layer>();
  #percent = 0;
  #retrying = false;

  accept({ id, status, progressDetail }: EngineMessage): void {
    // The first message has the tag as its id.
    if (id === undefined || status === undefined || status.startsWith('Pulling from')) return;
    const layer = this.#layers.get(id) ?? { state: 'waiting', bytes: 0, total: 0 };
    this.#layers.set(id, layer);
    this.#retrying = status.startsWith('Retrying');
    switch (status) {
      case 'Downloading':
        layer.state = 'loading';
        layer.bytes = progressDetail?.current ?? layer.bytes;
        layer.total = Math.max(layer.total, progressDetail?.total ?? 0, layer.bytes);
        break;
      case 'Verifying Checksum':
      case 'Download complete':
      case 'Extracting':
        layer.state = 'loaded';
        layer.bytes = layer.total;
        break;
      case 'Pull complete':
      case 'Already exists':
        layer.state = 'done';
        layer.bytes = layer.total;
        break;
    }
  }

  /** What has come so far, such as `42% (12.3 MB of 29.1 MB)`. */
  get text(): string {
    const layers = [...this.#layers.values()];
    const bytes = layers.reduce((sum, layer) => sum + layer.bytes, 0);
    const total = layers.reduce((sum, layer) => sum + layer.total, 0);
    if (total === 0) return 'asking the registry';
    const isLoaded = layers.every(({ state }) => state === 'loaded' || state === 'done');
    if (isLoaded) {
      const done = layers.filter(({ state }) => state === 'done').length;
      return `unpacking, ${done} of ${layers.length} layers done (${toSizeText(total)})`;
    }
    // Never back, though a layer that begins makes the whole larger; never 100 before the end.
    this.#percent = Math.max(this.#percent, Math.min(99, Math.floor((bytes / total) * 100)));
    const retrying = this.#retrying ? ', trying a layer again' : '';
    return `${this.#percent}% (${toSizeText(bytes)} of ${toSizeText(total)})${retrying}`;
  }

  get totalBytes(): number {
    return [...this.#layers.values()].reduce((sum, layer) => sum + layer.total, 0);
  }
}
