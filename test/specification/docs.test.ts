import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

describe('decisions', () => {
  const names = readdirSync(join(ROOT, 'docs/decisions')).toSorted();

  test('are numbered 1, 2, 3 … without a gap or a number given twice', () => {
    expect(names.filter((name) => !/^\d{4}-[a-z0-9-]+\.md$/.test(name))).toEqual([]);
    expect(names.map((name) => Number(name.slice(0, 4)))).toEqual(names.map((_, index) => index + 1));
  });

  test.each(names)('%s has its number and the four parts, in half a page', (name) => {
    const text = read(join('docs/decisions', name));
    expect(text).toMatch(new RegExp(`^# ${Number(name.slice(0, 4))}\\. `));
    const parts = [...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
    expect(parts).toEqual(['Context', 'Choice', 'Consequence', 'Rejected']);
    expect(text.split('\n').length).toBeLessThan(50);
  });
});

/** Without code, in which brackets mean something else. */
function proseOf(file: string): string {
  return read(file)
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`/g, '');
}

/** The anchors of a document, as GitHub makes them from its headings. */
function anchorsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function problemOf(file: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#', 2);
  const target = path === '' ? file : join(dirname(file), path);
  if (target.startsWith('..')) return 'leads out of the repository';
  if (!existsSync(join(ROOT, target))) return 'does not exist';
  if (anchor !== undefined && !anchorsOf(target).includes(anchor)) return 'has no such heading';
  return undefined;
}

test('every relative link of every document leads somewhere', () => {
  const files = globSync('**/*.md', { cwd: ROOT, exclude: ['node_modules/**'] });
  expect(files).toEqual(expect.arrayContaining(['README.md', 'guest/README.md', 'docs/drivers.md']));
  const links = files.flatMap((file) =>
    [...proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => ({ file, link })),
  );
  const relative = links.filter(({ link }) => !/^[a-z]+:/.test(link));
  expect(relative.length).toBeGreaterThan(50);
  const broken = relative.map(({ file, link }) => ({ file, link, problem: problemOf(file, link) }));
  expect(broken.filter(({ problem }) => problem !== undefined)).toEqual([]);
});

test('the generated documents are what the code says', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/generate-docs.ts', '--check'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
