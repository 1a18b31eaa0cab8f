import { SILENT_LOG } from '../../src/core/log.ts';
import { LoopVolumes } from '../../src/drivers/volumes/loop-volumes.ts';

/** Makes, grows and releases volumes until it is killed. */
const [, , directory = '', bytes = ''] = process.argv;
const volumes = new LoopVolumes({ directory, keepForMs: 1e9, log: SILENT_LOG });
await volumes.prepare();
process.stdout.write('ready\n');
for (let round = 0; ; round++) {
  const key = `key-${round % 2}`;
  await volumes.open(key, Number(bytes) * (1 + (round % 3)));
  await volumes.release(key, round % 3 === 2 ? 'nothing' : 'all');
}
