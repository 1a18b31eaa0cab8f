import { expect, test } from 'vitest';
import { IdentityRange } from './identity.ts';

const OURS = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
const HIGHEST = 2 ** 31 - 1;

test('[SC-03] every cell has host ids of its own', () => {
  const range = new IdentityRange(false);
  const ids = Array.from({ length: 1000 }, () => range.next()).flatMap(({ uidMappings }) =>
    uidMappings.map((mapping) => mapping.hostID),
  );
  expect(new Set(ids).size).toBe(2000);
});

test('[SC-03] none of them is a user of the host', () => {
  for (let start = 0; start < 200; start++) {
    for (const { hostID, size } of new IdentityRange(false).next().uidMappings) {
      expect(hostID).toBeGreaterThanOrEqual(0x70000000);
      expect(hostID).toBeLessThan(0x78000000);
      expect(hostID).toBeLessThanOrEqual(HIGHEST);
      expect(size).toBe(1);
    }
  }
});

test('[SC-03] the program is user 1000 inside and owns its FIFOs outside; root is somebody else', () => {
  const { uid, host, uidMappings, gidMappings } = new IdentityRange(false).next();
  expect(uid).toBe(1000);
  expect(uidMappings.map((mapping) => mapping.containerID)).toEqual([0, 1000]);
  expect(uidMappings.find((mapping) => mapping.containerID === 1000)?.hostID).toBe(host.uid);
  expect(gidMappings).toEqual(uidMappings);
});

test('[SC-03] two servers do not begin with the same ids', () => {
  const starts = Array.from({ length: 20 }, () => new IdentityRange(false).next().host.uid);
  expect(new Set(starts).size).toBeGreaterThan(10);
});

test('[SC-04] without root there is one id to map: our own, and root inside is nobody', () => {
  const range = new IdentityRange(true);
  const mappings = [{ containerID: 1000, hostID: 0, size: 1 }];
  const identity = { uid: 1000, uidMappings: mappings, gidMappings: mappings, host: OURS };
  expect([range.next(), range.next()]).toEqual([identity, identity]);
});

test('[RS-14] a cell whose files are there already gets the user that they belong to', () => {
  const { uid, host, uidMappings, gidMappings } = new IdentityRange(false).of(0x70000101);
  expect([uid, host]).toEqual([1000, { uid: 0x70000101, gid: 0x70000101 }]);
  expect(uidMappings).toEqual([
    { containerID: 0, hostID: 0x70000100, size: 1 },
    { containerID: 1000, hostID: 0x70000101, size: 1 },
  ]);
  expect(gidMappings).toEqual(uidMappings);
});

test('[FL-09, SC-03] a worker is who its folders belong to, and root in it is nobody of the host', () => {
  const { uid, host, uidMappings, gidMappings } = new IdentityRange(false).as({ uid: 1000, gid: 50 });
  expect([uid, host]).toEqual([1000, { uid: 1000, gid: 50 }]);
  const hostIds = [uidMappings, gidMappings].map((mappings) => mappings.map(({ hostID }) => hostID));
  const root = hostIds[0]?.[0] ?? 0;
  expect(root).toBeGreaterThanOrEqual(0x70000000);
  expect(hostIds).toEqual([
    [root, 1000],
    [root, 50],
  ]);
});

test('[FL-09, SC-03] root in a worker never has the id of the worker itself', () => {
  const range = new IdentityRange(false);
  const root = range.next().uidMappings[0]?.hostID ?? 0;
  // The ids that would be next.
  const { uidMappings } = range.as({ uid: root + 2, gid: root + 2 });
  expect(uidMappings.map(({ hostID }) => hostID)).toEqual([root + 4, root + 2]);
});

test('[FL-09, SC-04] without root a worker can only be who we are', () => {
  const range = new IdentityRange(true);
  expect(range.as(OURS)).toEqual(range.next());
  for (const other of [
    { uid: OURS.uid + 1, gid: OURS.gid },
    { uid: OURS.uid, gid: OURS.gid + 1 },
  ]) {
    expect(() => range.as(other)).toThrow(expect.objectContaining({ code: 'POLICY_UNENFORCEABLE' }));
  }
});
