import type { EngineApi } from '../../test/support/engine-api.ts';
import {
  commandFor,
  commandThatWrites,
  fileNameOf,
  requireHello,
  type LanguageName,
} from '../support/hello.ts';
import { note } from '../support/progress.ts';
import type { Way } from './way.ts';

/**
 * The interpreter started in one long-lived container, by the three calls of the Engine API that a server would make:
 * create the exec, start it and read its output, ask for its exit code. The `docker` program would cost more.
 */
export async function makeDockerExecWay(
  engine: EngineApi,
  container: string,
  languages: readonly LanguageName[],
): Promise<Way> {
  const hello = async (language: LanguageName): Promise<number> => {
    const startedAt = performance.now();
    const answer = await engine.exec(container, commandFor(language, `/tmp/${fileNameOf(language)}`));
    const ms = performance.now() - startedAt;
    requireHello(`docker exec ${language}`, answer);
    return ms;
  };
  const usable = new Set<LanguageName>();
  for (const language of languages) {
    await engine.exec(container, commandThatWrites(language, `/tmp/${fileNameOf(language)}`));
    try {
      await hello(language);
      usable.add(language);
    } catch (error) {
      note(`docker exec: no ${language} in the container (${String(error)})`);
    }
  }
  return { name: 'docker exec', languages: usable, hello };
}
