import { describe, expect, test } from 'vitest';
import { checkPythonSpec, normalName, toRequirement } from './pip-spec.ts';

describe('[MC-10] what a package of Python may be asked for as', () => {
  test.each([
    ['requests', undefined, 'requests'],
    ['PyYAML', '6.0.1', 'pyyaml==6.0.1'],
    ['ruamel.yaml', '>=0.17, <1', 'ruamel-yaml>=0.17,<1'],
    ['a_b', '~=1.2', 'a-b~=1.2'],
    ['x', '==1.*', 'x==1.*'],
    ['x', '1.0rc1.post2.dev3', 'x==1.0rc1.post2.dev3'],
  ])('%s %s', (name, range, requirement) => {
    expect(toRequirement(checkPythonSpec({ name, range }))).toBe(requirement);
  });

  test.each([
    ['', undefined],
    ['-r', undefined],
    ['--index-url=x', undefined],
    ['a b', undefined],
    ['a\nb', undefined],
    ['a[b]', undefined],
    ['a @ http://x', undefined],
    ['git+https://x/y', undefined],
    ['./a', undefined],
    ['a/b', undefined],
    ['x'.repeat(101), undefined],
    ['é', undefined],
    ['a', ''],
    ['a', 'latest'],
    ['a', '1 --hash=x'],
    ['a', '1\n-r /etc/passwd'],
    ['a', '@ file:///x'],
    ['a', '1; python_version>"3"'],
    ['a', '==='],
    ['a', '1,2'],
  ])('not %j %j', (name, range) => {
    expect(() => checkPythonSpec({ name, range })).toThrow(
      expect.objectContaining({ code: 'PACKAGE_UNAVAILABLE' }) as Error,
    );
  });

  test('names that the index takes for the same are the same', () => {
    expect(['Foo.Bar', 'foo__bar', 'FOO-bar'].map(normalName)).toEqual(['foo-bar', 'foo-bar', 'foo-bar']);
  });
});
