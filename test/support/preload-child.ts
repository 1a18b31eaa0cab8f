import { fileURLToPath } from 'node:url';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import { PROMISES } from '../../src/core/enforcement.ts';
import { messageOf } from '../../src/core/errors.ts';
import type { ExecRequest } from '../../src/core/exec.ts';
import { DEFAULT_LIMITS, type Limits } from '../../src/core/limits.ts';
import { PreloadDriver } from '../../src/drivers/preload/driver.ts';

/** A small server of the preload driver, to be another user or to be killed. Says one line of JSON for each request. */
export interface PreloadChildTask {
  readonly stateDirectory: string;
  readonly requests: readonly ExecRequest[];
  readonly limits?: Partial<Limits>;
  /** Says `running` instead, once there is a line of output, and goes on. */
  readonly stay?: boolean;
}

const { stateDirectory, requests, limits, stay } = JSON.parse(process.argv[2] ?? '') as PreloadChildTask;
const driver = new PreloadDriver({
  stateDirectory,
  guest: fileURLToPath(new URL('../../guest', import.meta.url)),
  tools: bundledTools(),
  weaker: PROMISES,
});
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`);

const cell = await driver.create({
  name: 'child',
  kind: 'run',
  limits: { ...DEFAULT_LIMITS, cpus: 2, memoryBytes: 512 * 1024 * 1024, ...limits },
});
for (const request of requests) {
  try {
    const exec = await cell.exec(request);
    exec.closeStdin();
    let output = '';
    for await (const event of exec.events) {
      if (event.type === 'exit')
        say({ output, outcome: event.outcome, usage: event.usage, isolation: cell.isolation });
      else output += Buffer.from(event.bytes).toString();
      if (stay === true && output.includes('\n')) say('running');
    }
  } catch (error) {
    say({ error: messageOf(error) });
  }
}
await driver.close();
