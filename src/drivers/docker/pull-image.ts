import { messageOf } from '../../core/errors.ts';
import { toSizeText } from '../../lib/size-text.ts';
import { EngineRefusal, type Engine } from './engine.ts';
import { EngineSilence, followEngineWork } from './engine-work.ts';
import type { ImageName } from '../images/image-name.ts';
import { classifyImageTrouble, type ImageTrouble } from '../images/image-problem.ts';
import { PullProgress } from './pull-progress.ts';

export interface ImagePull {
  /** As people wrote it. */
  readonly image: string;
  readonly name: ImageName;
  readonly platform: string | undefined;
  readonly silenceMs: number;
  /** Shortest time between two lines of progress. */
  readonly progressEveryMs: number;
  now(): number;
  onProgress(text: string): void;
}

/** Pulls one image. Without credentials: a private image is pulled by `docker pull`, which has them. */
export async function pullImage(engine: Engine, pull: ImagePull): Promise<void> {
  const { image, name, platform, silenceMs } = pull;
  const progress = new PullProgress();
  const begun = pull.now();
  const tell = toPaced(pull);
  tell(`pulling ${image}: ${progress.text}`);
  await followEngineWork(engine, {
    what: `pull ${image}`,
    silenceMs,
    start: (docker, abortSignal) =>
      docker.createImage({
        fromImage: name.repository,
        tag: name.tag,
        ...(platform === undefined ? {} : { platform }),
        abortSignal,
      }),
    onMessage: (message) => {
      progress.accept(message);
      tell(`pulling ${image}: ${progress.text}`);
    },
  });
  // Nothing to load: all layers were there.
  const size = progress.totalBytes === 0 ? '' : `: ${toSizeText(progress.totalBytes)}`;
  pull.onProgress(`pulled ${image}${size} in ${((pull.now() - begun) / 1000).toFixed(1)} s`);
}

/** Why a pull failed, if that is the fault of image, registry or network, and not of ours or of the engine. */
export function whyNotPulled(error: unknown): { trouble: ImageTrouble; reason: string } | undefined {
  if (error instanceof EngineSilence) return { trouble: 'silent', reason: messageOf(error) };
  if (!(error instanceof EngineRefusal)) return undefined;
  return { trouble: classifyImageTrouble(error.words), reason: error.words };
}

/** At most one line in a while, and none twice. */
function toPaced(pull: ImagePull): (text: string) => void {
  let due = -Infinity;
  let last = '';
  return (text) => {
    if (text === last || pull.now() < due) return;
    due = pull.now() + pull.progressEveryMs;
    last = text;
    pull.onProgress(text);
  };
}
