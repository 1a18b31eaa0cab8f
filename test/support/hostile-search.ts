/** Run in the cells of a test as verification, gate, set-up and filter of git: fails if it finds a secret. */
import { readFileSync } from 'node:fs';
import { lookAround, type Plan } from './hostile-look-attack.ts';

const plan = JSON.parse(readFileSync('/workspace/hostile.json', 'utf8')) as Plan;
// Nobody can write to /usr, and it is large.
const { found, walked } = lookAround(plan, ['/usr']);
process.stdout.write(`${found.length === 0 && walked > 0 ? 'nothing' : found.join('\n')}\n`);
process.exitCode = found.length === 0 ? 0 : 1;
