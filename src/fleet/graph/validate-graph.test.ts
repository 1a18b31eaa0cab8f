import { describe, expect, test } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import { findCycles } from './find-cycles.ts';
import { checkGraph, validateGraph } from './validate-graph.ts';

type Wish = Readonly<Record<string, unknown>>;

const task = (id: string, level: number, more: Wish = {}): Wish => ({
  id,
  title: `Make ${id}`,
  level,
  ...more,
});
const graph = (tasks: readonly unknown[], more: Wish = {}): Wish => ({ feature: 'auth', tasks, ...more });
const problemsOf = (content: unknown): readonly string[] => checkGraph(content).problems;
const warningsOf = (content: unknown): readonly string[] => checkGraph(content, 'auth').warnings;

const GOOD = graph(
  [
    task('AUTH-L1-001', 1, { files: { create: ['src/model.ts'] } }),
    task('AUTH-L1-002', 1, { files: { create: ['src/store.ts'], read: ['src/model.ts'] } }),
    task('AUTH-L2-001', 2, {
      dependencies: ['AUTH-L1-001', 'AUTH-L1-002'],
      files: { modify: ['src/main.ts'] },
    }),
  ],
  { levels: { 1: { name: 'Base', tasks: ['AUTH-L1-001', 'AUTH-L1-002'] }, 2: { depends_on_levels: [1] } } },
);

describe('a good graph', () => {
  test('[FL-04] passes without a word, with what was left out filled in', () => {
    const { graph: checked, problems, warnings } = checkGraph(GOOD, 'auth');
    expect({ problems, warnings }).toEqual({ problems: [], warnings: [] });
    expect(checked?.tasks[0]).toMatchObject({
      dependencies: [],
      files: { create: ['src/model.ts'], modify: [], read: [] },
    });
  });

  test('[FL-04] keeps keys that nobody here knows', () => {
    const more = graph([task('A', 1, { steps: [{ step: 1 }], status: 'pending' })], { total_tasks: 1 });
    expect(validateGraph(more, 'x').graph).toMatchObject({
      total_tasks: 1,
      tasks: [{ steps: [{ step: 1 }] }],
    });
  });

  test('[FL-04] many tasks may read one file', () => {
    const files = { read: ['src/model.ts'] };
    expect(problemsOf(graph([task('A', 1, { files }), task('B', 1, { files })]))).toEqual([]);
  });
});

describe('a bad graph', () => {
  test.each<[string, unknown, readonly string[]]>([
    ['no object', [], ['must be an object with feature and tasks: expected object, received array']],
    ['no tasks', { feature: 'auth' }, ['tasks: expected array, received undefined']],
    ['an empty list', graph([]), ['tasks: must have at least one task']],
    [
      'an id that would be a path',
      graph([task('../x', 1)]),
      ['tasks[0] (../x).id: must begin with a letter and have letters, digits, - and _, at most 64'],
    ],
    ['no id', graph([{ title: 'x', level: 1 }]), ['tasks[0].id: expected string, received undefined']],
    ['level zero', graph([task('A', 0)]), ['tasks[0] (A).level: expected number to be >=1']],
    ['the same id twice', graph([task('A', 1), task('A', 2)]), ['tasks[1] (A).id: tasks[0] has the same id']],
    [
      'an unknown dependency',
      graph([task('A', 1), task('B', 2, { dependencies: ['A', 'Z'] })]),
      ['tasks[1] (B).dependencies[1]: there is no task "Z"'],
    ],
    [
      'itself',
      graph([task('A', 1, { dependencies: ['A'] })]),
      ['tasks[0] (A).dependencies[0]: a task cannot depend on itself'],
    ],
    [
      'a dependency in the same level',
      graph([task('A', 1), task('B', 1, { dependencies: ['A'] })]),
      ['tasks[1] (B).dependencies[0]: A is in level 1, which is not below level 1 of this task'],
    ],
    [
      'a circle',
      graph([
        task('A', 1, { dependencies: ['C'] }),
        task('B', 2, { dependencies: ['A'] }),
        task('C', 3, { dependencies: ['B'] }),
      ]),
      [
        'tasks[0] (A).dependencies[0]: C is in level 3, which is not below level 1 of this task',
        'tasks[0] (A).dependencies: each waits for the next: A → C → B → A',
      ],
    ],
    [
      'a file of two tasks, in different levels and written differently',
      graph([
        task('A', 1, { files: { create: ['src/a.ts'] } }),
        task('B', 2, { files: { modify: ['./src//a.ts'] } }),
      ]),
      ['tasks[1] (B).files.modify[0]: src/a.ts belongs to tasks[0] (A) already; a file belongs to one task'],
    ],
    [
      'a path that leads out',
      graph([task('A', 1, { files: { create: ['../a', '.git/config'] } })]),
      [
        'tasks[0] (A).files.create[0]: must be a path below the repository, without .., and not within .git',
        'tasks[0] (A).files.create[1]: must be a path below the repository, without .., and not within .git',
      ],
    ],
    [
      'a verification that takes too long',
      graph([task('A', 1, { verification: { command: 'true', timeout_seconds: 601 } })]),
      ['tasks[0] (A).verification.timeout_seconds: expected number to be <=600'],
    ],
    [
      'levels that say something else',
      graph([task('A', 1), task('B', 1), task('C', 2)], {
        levels: { 1: { tasks: ['A', 'C', 'D', 'A'] }, 2: { depends_on_levels: [2] }, base: {} },
      }),
      [
        'levels.1.tasks[1]: C says that it is in level 2',
        'levels.1.tasks[2]: there is no task "D"',
        'levels.1.tasks[3]: A is named twice',
        'tasks[1] (B).level: levels.1.tasks does not name this task',
        'levels.2.depends_on_levels[0]: level 2 is not below level 2',
        'levels.base: must be the number of a level, from 1 on',
      ],
    ],
  ])('[FL-04] %s', (_, content, problems) => {
    expect(problemsOf(content)).toEqual(problems);
    expect(checkGraph(content).graph).toBeUndefined();
  });

  test('[FL-04] every problem is listed, those of the schema do not hide the others', () => {
    const content = graph([
      task('A', 1, { title: '' }),
      task('B', 2, { dependencies: ['A', 'nobody'], files: { create: ['x'] } }),
      task('C', 2, { files: { create: ['x'] } }),
    ]);
    const error = catchError(() => validateGraph(content, 'task-graph.json'));
    expect(error.message.split('\n')).toEqual([
      'task-graph.json: the task graph has 3 problems:',
      expect.stringMatching(/^ {2}tasks\[0\] \(A\)\.title: /),
      '  tasks[1] (B).dependencies[1]: there is no task "nobody"',
      '  tasks[2] (C).files.create[0]: x belongs to tasks[1] (B) already; a file belongs to one task',
    ]);
    expect(error.hint).toContain('hotcell fleet design --validate-only');
  });

  test('[FL-04] is looked at in no time, however large', () => {
    const tasks = Array.from({ length: 5001 }, (_, index) => task(`T${index}`, 1));
    expect(problemsOf(graph(tasks))).toEqual(['tasks: 5001 are more than 5000; split the feature']);
  });
});

test('[FL-04] what is odd is said and does no harm', () => {
  const content = graph(
    [
      task('A', 1, { files: { create: ['src/a.ts', './src/a.ts', 'lib'] } }),
      task('a', 4, { dependencies: ['A', 'A'], files: { create: ['src/A.ts', 'lib/x.ts'] } }),
    ],
    { feature: 'other', levels: { 1: {}, 3: {} } },
  );
  expect(problemsOf(content)).toEqual([]);
  expect(warningsOf(content)).toEqual([
    'tasks[1] (a).id: differs from A in upper and lower case only',
    'tasks[1] (a).dependencies[1]: A is named twice',
    'tasks[0] (A).files.create[1]: src/a.ts is named twice',
    'tasks[1] (a).files.create[0]: src/A.ts differs from src/a.ts of A in upper and lower case only',
    'tasks[1] (a).files: lib/x.ts lies below lib of A',
    'levels: no task is between level 1 and level 4',
    'levels.3: no task has this level',
    'levels: does not name level 4',
    'feature: the graph is for "other", and is used for auth',
  ]);
});

test('[FL-04] a chain of any length is followed, and circles apart from each other are all found', () => {
  const long = Array.from({ length: 100_000 }, (_, index): [string, string[]] => [
    String(index),
    index === 0 ? [] : [String(index - 1)],
  ]);
  expect(findCycles(new Map(long))).toEqual([]);
  expect(findCycles(new Map([...long, ['0', ['99999']]]))[0]).toHaveLength(100_000);
  const two = { a: ['b'], b: ['a', 'c'], c: ['d'], d: ['c'], e: ['a'], f: ['unknown'] };
  expect(findCycles(new Map(Object.entries(two)))).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
});

function catchError(run: () => unknown): HotcellError {
  try {
    run();
  } catch (error) {
    if (error instanceof HotcellError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}
