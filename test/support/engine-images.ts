import { Readable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import type { Engine } from '../../src/drivers/docker/engine.ts';
import { followEngineWork } from '../../src/drivers/docker/engine-work.ts';
import { toTar } from '../../src/lib/tar-archive.ts';
import { BASE_IMAGE } from './base-image.ts';

/** Undefined when there is none of this name. */
export async function imageId(engine: Engine, name: string): Promise<string | undefined> {
  return engine
    .call('look at an image', (docker) => docker.getImage(name).inspect())
    .then(
      ({ Id }) => Id,
      () => undefined,
    );
}

export async function tagImage(engine: Engine, id: string, name: string): Promise<void> {
  const [repo = '', tag = 'latest'] = name.split(':');
  await engine.call('name an image', (docker) => docker.getImage(id).tag({ repo, tag }));
}

export async function removeImage(engine: Engine, name: string): Promise<void> {
  await engine
    .call('remove an image', (docker) => docker.getImage(name).remove({ force: true }))
    .catch(() => {});
}

/** What a command prints in a container of the image, started as the image says. */
export async function runInImage(engine: Engine, image: string, argv: readonly string[]): Promise<string> {
  return engine.call('run a container', async (docker) => {
    const container = await docker.createContainer({
      Image: image,
      Cmd: [...argv],
      Tty: true,
      HostConfig: { NetworkMode: 'none' },
    });
    try {
      await container.start();
      await container.wait();
      const output = (await container.logs({ stdout: true, stderr: true })).toString();
      return stripVTControlCharacters(output).replaceAll('\r\n', '\n').trimEnd();
    } finally {
      await container.remove({ force: true });
    }
  });
}

const MARK = 'hotcell.test=derived';

/** Makes an image from the base of the tests by one command. */
export async function deriveImage(engine: Engine, tag: string, command: string): Promise<void> {
  const dockerfile = new TextEncoder().encode(`FROM ${BASE_IMAGE}\nRUN ${command}\nLABEL ${MARK}\n`);
  const context = toTar([{ path: 'Dockerfile', content: dockerfile, mode: 0o644 }]);
  await followEngineWork(engine, {
    what: `build ${tag}`,
    silenceMs: 60_000,
    start: (docker) => docker.buildImage(Readable.from([context]), { t: tag, version: '1', forcerm: true }),
    onMessage: () => {},
  });
}

/** Removes what builds from derived images left: an engine keeps the steps before the one that failed. */
export async function removeUnnamedImages(engine: Engine): Promise<void> {
  const filters = JSON.stringify({ dangling: ['true'], label: [MARK] });
  await engine.call('remove images', (docker) => docker.pruneImages({ filters }));
}
