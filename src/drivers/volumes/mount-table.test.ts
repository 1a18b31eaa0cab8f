import { expect, test } from 'vitest';
import { mountPoints, parseMountPoints } from './mount-table.ts';

test('[RS-13] places are read from the table of the kernel, with whatever is in their names', () => {
  const table = [
    '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
    '40 22 7:0 / /var/a\\040b\\011c\\134d rw - ext4 /dev/loop0 rw',
    '41 22 0:5 / /proc rw - proc proc rw',
    '',
  ].join('\n');
  expect(parseMountPoints(table)).toEqual(['/', '/var/a b\tc\\d', '/proc']);
});

test.skipIf(process.platform !== 'linux')('[RS-13] the table of this machine has a root', async () => {
  expect((await mountPoints()).has('/')).toBe(true);
});
