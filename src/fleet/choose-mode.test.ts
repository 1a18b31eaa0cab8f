import { expect, test } from 'vitest';
import { chooseMode, type Candidate, type ModeWish } from './choose-mode.ts';

const ok: Candidate = { ok: true, runtime: 'some runtime' };
const no = (problem: string): Candidate => ({ ok: false, problem, remedy: `mend ${problem}` });

type Name = 'docker' | 'oci' | 'subprocess';
const drivers = { walled: ['docker', 'oci'], plain: 'subprocess' } as const;

function choose(
  mode: ModeWish<Name>['mode'],
  driver: ModeWish<Name>['driver'],
  docker: Candidate,
  oci: Candidate,
) {
  const look = (name: Name) => Promise.resolve(name === 'docker' ? docker : oci);
  return chooseMode<Name>({ mode, driver, drivers, look });
}

test.each([
  ['auto', 'auto', ok, ok, 'docker'],
  ['auto', 'auto', no('image'), ok, 'oci'],
  ['auto', 'auto', no('image'), no('agent'), 'subprocess'],
  ['auto', 'oci', ok, ok, 'oci'],
  ['auto', 'oci', ok, no('agent'), 'subprocess'],
  ['container', 'auto', no('engine'), ok, 'oci'],
  ['container', 'docker', ok, no('agent'), 'docker'],
  ['subprocess', 'docker', ok, ok, 'subprocess'],
] as const)('[FL-02] mode %s, driver %s', async (...row) => {
  const [mode, driver, docker, oci, expected] = row;
  expect((await choose(mode, driver, docker, oci)).driver).toBe(expected);
});

test('[FL-02] auto says what was missing', async () => {
  const { mode, reason } = await choose('auto', 'auto', no('no image'), no('no agent'));
  expect({ mode, reason }).toEqual({ mode: 'subprocess', reason: 'auto: no cells here: no image; no agent' });
});

test('[FL-02] whoever asks for cells gets cells, or is told what to do', async () => {
  const refused = choose('container', 'auto', no('no image'), no('no agent'));
  await expect(refused).rejects.toMatchObject({
    code: 'DRIVER_UNAVAILABLE',
    hint: 'mend no image\nmend no agent',
  });
});

test('[FL-02] plain processes need nothing of an engine', async () => {
  const look = (): never => {
    throw new Error('nobody may ask');
  };
  expect(await chooseMode<Name>({ mode: 'subprocess', driver: 'auto', drivers, look })).toMatchObject({
    mode: 'subprocess',
  });
});
