import { expect, test } from 'vitest';
import { checkLedger, type Source } from './ledger-check.ts';
import { Ledger, type EndedCommand } from './ledger.ts';

interface Held {
  readonly project: string;
  readonly files: Map<string, string>;
  readonly ended: Map<string, EndedCommand>;
}

/** A server in memory, whose memory can be tampered with. */
class Remembered implements Source {
  readonly ledger: Ledger;
  readonly sessions = new Map<string, Held>();
  readonly gone = new Set<string>();

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  add(id: string, project: string): Held {
    const held = { project, files: new Map(), ended: new Map() };
    this.sessions.set(id, held);
    return held;
  }

  list = () => Promise.resolve([...this.sessions].map(([id, { project }]) => ({ id, project })));
  status = (id: string) => Promise.resolve(this.sessions.has(id) ? 200 : 410);
  file = (id: string, path: string) => Promise.resolve(this.sessions.get(id)?.files.get(path));
  ended = (id: string, exec: string) => Promise.resolve(this.sessions.get(id)?.ended.get(exec));
  finish = () => Promise.resolve([]);
  wake = () => Promise.resolve();
  reopen: Source['reopen'] = ({ project, lane, id }) => {
    const held = this.add(`${id}-again`, project);
    held.files.set('kept', 'work');
    return Promise.resolve(this.ledger.addSession(`${id}-again`, project, lane));
  };
  readonly cleared: string[] = [];
  clear = (project: string) => Promise.resolve(void this.cleared.push(project));
}

/** One session with a file and a command, on both sides. */
function prepare() {
  const ledger = new Ledger();
  const source = new Remembered(ledger);
  const entry = ledger.addSession('s1', 'p1', 0);
  const held = source.add('s1', 'p1');
  ledger.addFile(entry, 'kept', 'work');
  held.files.set('kept', 'work');
  ledger.addEnded(entry, 'x1', { exitCode: 3, output: 'abc' });
  held.ended.set('x1', { exitCode: 3, output: 'abc' });
  return { ledger, source, entry, held };
}

test('all that was acknowledged is there', async () => {
  const { ledger, source } = prepare();
  expect(await checkLedger(ledger, source)).toEqual([]);
  expect(ledger.acknowledged).toBe(3);
});

test('a session, a file, a result that is lost, and a file that was changed', async () => {
  const first = prepare();
  first.source.sessions.clear();
  expect(await checkLedger(first.ledger, first.source)).toEqual([expect.stringContaining('is lost')]);
  const second = prepare();
  second.held.files.clear();
  second.held.ended.set('x1', { exitCode: 0, output: 'abc' });
  expect(await checkLedger(second.ledger, second.source)).toEqual([
    expect.stringContaining('file kept is gone'),
    expect.stringContaining('exit code 3 and output abc, now exit code 0'),
  ]);
  const third = prepare();
  third.held.files.set('kept', 'other');
  expect(await checkLedger(third.ledger, third.source)).toEqual([expect.stringContaining('nobody wrote')]);
});

test('what nobody answered may be there or not, and is known afterwards', async () => {
  const { ledger, source, entry, held } = prepare();
  ledger.askForFile(entry, 'kept', 'newer');
  ledger.askForFile(entry, 'other', 'first');
  held.files.set('kept', 'newer');
  ledger.askForSession('p2', 1);
  source.add('s2', 'p2');
  ledger.askForSession('p3', 2);
  expect(await checkLedger(ledger, source)).toEqual([]);
  expect([...ledger.sessions.keys()]).toEqual(['s1', 's2']);
  held.files.set('kept', 'work');
  expect(await checkLedger(ledger, source)).toEqual([expect.stringContaining('nobody wrote')]);
});

test('a session that nobody asked for, and one that rises again', async () => {
  const { ledger, source, entry } = prepare();
  source.add('s9', 'p9');
  expect(await checkLedger(ledger, source)).toEqual([expect.stringContaining('nobody has asked for it')]);
  source.sessions.delete('s9');
  ledger.addDeleted(entry);
  expect(await checkLedger(ledger, source)).toEqual([
    expect.stringContaining('was deleted and is there again'),
    expect.stringContaining('nobody has asked for it'),
  ]);
});

test('a deletion without an answer is one or none', async () => {
  const { ledger, source, entry } = prepare();
  entry.isLeaving = true;
  expect(await checkLedger(ledger, source)).toEqual([]);
  expect(entry.isLeaving).toBe(false);
  entry.isLeaving = true;
  source.sessions.delete('s1');
  expect(await checkLedger(ledger, source)).toEqual([]);
  expect(ledger.sessions.size).toBe(0);
});

test('of a cell that was killed the files are left, and no more sessions are lost than cells', async () => {
  const { ledger, source } = prepare();
  ledger.addSession('s2', 'p2', 1);
  ledger.allowLosses(1);
  source.sessions.clear();
  expect(await checkLedger(ledger, source)).toEqual([expect.stringContaining('session s2 of lane 1')]);
  expect([...ledger.sessions.keys()]).toEqual(['s1-again']);
});

test('[FL-15] a task of a fleet that was committed twice, or never', async () => {
  const { ledger, source } = prepare();
  ledger.addFleet('f', ['A', 'B', 'C'], ['A', 'B', 'B']);
  expect(await checkLedger(ledger, source)).toEqual([
    'task B of fleet f was committed 2 times',
    'task C of fleet f was committed 0 times',
  ]);
  ledger.addFleet('g', ['A'], ['A']);
  expect(await checkLedger(ledger, source)).toEqual([]);
});

test('one that was asked for, made without an answer and lost: its files are cleared away, and those of no other', async () => {
  const { ledger, source } = prepare();
  ledger.askForSession('p2', 1);
  ledger.askForSession('p3', 1);
  source.add('s3', 'p3');
  expect(await checkLedger(ledger, source)).toEqual([]);
  expect(source.cleared).toEqual(['p2']);
  expect(await checkLedger(ledger, source)).toEqual([]);
  expect(source.cleared).toEqual(['p2']);
});
