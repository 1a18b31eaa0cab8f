/** A server with a cell whose program never ends; says its id, and waits to be killed: node apple-child.ts CLI MARKER */
import { bash } from '../contract/cells.ts';
import { idleSpec, makeAppleDriver } from '../support/apple-driver.ts';

const [cli = '', marker = ''] = process.argv.slice(2);
const cell = await makeAppleDriver({ cli }).create(idleSpec());
const program = await cell.exec(bash(`echo up; exec -a ${marker} sleep 1000`));
for await (const event of program.events) if (event.type === 'stdout') process.stdout.write(`${cell.id}\n`);
