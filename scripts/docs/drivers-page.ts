import { PROMISES, PROMISE_MEANING } from '../../src/core/enforcement.ts';
import { DRIVER_NAMES, kindOf } from '../../src/drivers/registry.ts';
import { CONTRACT_ROWS, type ContractRow } from '../../test/contract/contract-rows.ts';
import { code, page, plain, table } from './markdown.ts';

/** Who keeps which promise, and what a driver is not held to. */
export function driversPage(): string {
  const columns = byWay(({ enforcement }) => enforcement);
  const exemptions = byWay(({ exempt }) => exempt);
  return page(
    'Drivers',
    ['src/core/enforcement.ts', 'src/drivers/registry.ts', 'test/contract/contract-rows.ts'],
    'What each driver does and does not protect against is in [SECURITY.md](../SECURITY.md). ' +
      '`hotcell doctor` prints this table for the machine it runs on.',
    '## What each driver is like',
    table(
      ['Driver', 'Walls around', 'Images', 'Shared by default', 'Terminals', 'Workers', 'Tried by `auto`'],
      DRIVER_NAMES.map((name) => {
        const { traits, auto } = kindOf(name);
        const { confines, images, sharesByDefault, terminals, workers } = traits;
        const marks = [images, sharesByDefault, terminals, workers].map((is) => (is ? 'yes' : 'no'));
        return [code(name), confines, ...marks, typeof auto === 'string' ? auto : auto.join(', ')];
      }),
    ),
    '## Who keeps which promise',
    '`kernel` is the kernel of the host. `hypervisor` is a second kernel between the program and the host. ' +
      '`supervisor` is the server, which watches and kills. `nobody` means that cells are refused ' +
      '(`POLICY_UNENFORCEABLE`) unless the promise is given up by name in the setting `weaker`.',
    table(
      ['Promise', 'Meaning', ...columns.map(([heading]) => heading)],
      PROMISES.map((promise) => [
        code(promise),
        plain(PROMISE_MEANING[promise]),
        ...columns.map(([, enforcement]) => enforcement[promise]),
      ]),
    ),
    '## What a driver is not held to',
    'One suite, [test/contract](../test/contract/driver-contract.ts), runs over every driver and runtime. These are the exceptions.',
    table(
      ['Driver', 'Test', 'Reason'],
      exemptions.flatMap(([name, exempt]) => {
        const reasons = Object.entries(exempt).map(([test, reason]) => [name, plain(test), plain(reason)]);
        return reasons.length > 0 ? reasons : [[name, 'none', '']];
      }),
    ),
  );
}

/** Of every driver, under its name and that of the way it runs. */
function byWay<Cell>(pick: (row: ContractRow) => Readonly<Record<string, Cell>>): [string, Cell][] {
  return DRIVER_NAMES.flatMap((name) =>
    Object.entries(pick(CONTRACT_ROWS[name])).map(([way, cell]): [string, Cell] => [
      way === '' ? name : `${name}: ${way}`,
      cell,
    ]),
  );
}
