import { expect, test } from 'vitest';
import { fillPlaceholders, fillRequest } from './cell.ts';

const PLACES = { workdir: '/tmp', guest: '/opt/guest' };

test.each([
  ['{workdir}/exec.py', '/tmp/exec.py'],
  ['{guest}/init.sh:{guest}/idle.sh', '/opt/guest/init.sh:/opt/guest/idle.sh'],
  ['{workdir}{guest}', '/tmp/opt/guest'],
  ['{other} {WORKDIR} {filepath} ${workdir', '{other} {WORKDIR} {filepath} ${workdir'],
  ['', ''],
])('%j becomes %j', (text, filled) => {
  expect(fillPlaceholders(text, PLACES)).toBe(filled);
});

test.each(['$&', "$'", '$`', '$1', '$<name>', '$$'])('a place called %s is put in as it is', (name) => {
  const places = { workdir: `/work/${name}`, guest: `/guest/${name}` };
  expect(fillPlaceholders('{workdir} {guest}', places)).toBe(`/work/${name} /guest/${name}`);
});

test('every word of a request is filled, the program included', () => {
  const request = fillRequest(
    { argv: ['{guest}/run', '-x', '{workdir}'], env: { AT: '{guest}' }, touch: '{workdir}/x.py' },
    PLACES,
    { HOME: '/tmp', AT: 'overridden' },
  );
  expect(request).toEqual({
    argv: ['/opt/guest/run', '-x', '/tmp'],
    env: { HOME: '/tmp', AT: '/opt/guest' },
    cwd: '/tmp',
    touch: '/tmp/x.py',
  });
});

test('[FL-09] a command may begin in a folder of the spec, by its name, and in no other', () => {
  const places = { ...PLACES, code: '/workspace' };
  const request = { argv: ['pwd'], env: {}, cwd: '/{code}' } as const;
  expect(fillRequest({ ...request, folder: 'code' }, places, {}).cwd).toBe('/workspace');
  expect(fillRequest(request, places, {}).cwd).toBe('/{code}');
  for (const folder of ['none', 'toString'])
    expect(() => fillRequest({ ...request, folder }, places, {})).toThrow(
      `no folder with the name ${folder}`,
    );
});

test('[RS-02] what comes from outside is handed on as it is, whatever it looks like', () => {
  const verbatim = { argv: ["echo '{guest}'"], env: { AT: '{workdir}' } };
  const { argv, env } = fillRequest({ argv: ['bash', '-c'], env: { AT: '{guest}' }, verbatim }, PLACES, {});
  expect({ argv, env }).toEqual({ argv: ['bash', '-c', "echo '{guest}'"], env: { AT: '{workdir}' } });
});
