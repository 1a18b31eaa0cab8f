import { expect, test } from 'vitest';
import { IdentityRange } from './identity.ts';

const HIGHEST = 2 ** 31 - 1;

test('[SC-03] every cell has host ids of its own', () => {
  const range = new IdentityRange(false);
  const ids = Array.from({ length: 1000 }, () => range.next()).flatMap(({ mappings }) =>
    mappings.map((mapping) => mapping.hostID),
  );
  expect(new Set(ids).size).toBe(2000);
});

test('[SC-03] none of them is a user of the host', () => {
  for (let start = 0; start < 200; start++) {
    for (const { hostID, size } of new IdentityRange(false).next().mappings) {
      expect(hostID).toBeGreaterThanOrEqual(0x70000000);
      expect(hostID).toBeLessThan(0x78000000);
      expect(hostID).toBeLessThanOrEqual(HIGHEST);
      expect(size).toBe(1);
    }
  }
});

test('[SC-03] the program is user 1000 inside and owns its FIFOs outside; root is somebody else', () => {
  const { uid, hostId, mappings } = new IdentityRange(false).next();
  expect(uid).toBe(1000);
  expect(mappings.map((mapping) => mapping.containerID)).toEqual([0, 1000]);
  expect(mappings.find((mapping) => mapping.containerID === 1000)?.hostID).toBe(hostId);
});

test('[SC-03] two servers do not begin with the same ids', () => {
  const starts = Array.from({ length: 20 }, () => new IdentityRange(false).next().hostId);
  expect(new Set(starts).size).toBeGreaterThan(10);
});

test('[SC-04] without root there is one id to map: our own, and root inside is nobody', () => {
  const range = new IdentityRange(true);
  const identity = {
    uid: 1000,
    mappings: [{ containerID: 1000, hostID: 0, size: 1 }],
    hostId: process.geteuid?.(),
  };
  expect([range.next(), range.next()]).toEqual([identity, identity]);
});

test('[RS-14] a cell whose files are there already gets the user that they belong to', () => {
  const { uid, hostId, mappings } = new IdentityRange(false).of(0x70000101);
  expect([uid, hostId]).toEqual([1000, 0x70000101]);
  expect(mappings).toEqual([
    { containerID: 0, hostID: 0x70000100, size: 1 },
    { containerID: 1000, hostID: 0x70000101, size: 1 },
  ]);
});
