import { setTimeout as sleep } from 'node:timers/promises';
import { toStatusJson } from '../../fleet/status/status-json.ts';
import type { StatusView } from '../../fleet/status/status-view.ts';
import { EXIT_CODES } from '../exit-codes.ts';
import { listenForStop } from '../listen-for-stop.ts';
import type { Terminal } from '../terminal.ts';
import { LiveScreen } from './live-screen.ts';
import { watchFleet, type Look } from './look-at-fleet.ts';
import type { OpenFeature } from './open-feature.ts';
import { renderStatus, type StatusSections } from './render-status.ts';
import { describeChanges } from './status-changes.ts';

interface WatchWish {
  readonly sections: StatusSections;
  readonly json: boolean;
  readonly intervalMs: number;
}

/** From the beginning of a run to its end, or until the user has seen enough. Returns the exit code. */
export async function watchStatus(open: OpenFeature, wish: WatchWish, terminal: Terminal): Promise<number> {
  using stop = listenForStop(terminal);
  const last = await followRun(open, wish, terminal, stop.signal);
  if (last === undefined) return stop.exitCode() ?? EXIT_CODES.done;
  // The second screen is gone; how it ended stays to be seen.
  if (isLive(terminal, wish))
    for (const line of renderStatus(last.view, wish.sections, terminal.paint)) terminal.line(line);
  return isComplete(last) ? EXIT_CODES.done : EXIT_CODES.fleet;
}

/** What was seen last; undefined if somebody did not want to wait for it. */
async function followRun(
  open: OpenFeature,
  wish: WatchWish,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Look | undefined> {
  const waits = `waits for a run of ${open.paths.feature} to begin`;
  const look = watchFleet(open);
  const render = (view: StatusView): string[] => renderStatus(view, wish.sections, terminal.paint);
  using screen = isLive(terminal, wish) ? new LiveScreen(terminal) : undefined;
  const tell = wish.json ? toJsonLines(terminal) : toLines(terminal, render);
  let last: Look | undefined;
  let wasRunning = false;
  let isTold = false;
  for (;;) {
    // Before the first run there is no state; one that was there must not go.
    if (last !== undefined || open.store.read() !== undefined) last = await look();
    const isAlive = last !== undefined && isRunning(last);
    const isOver = last !== undefined && (isComplete(last) || (wasRunning && !isAlive));
    const isWaiting = !isAlive && !isOver;
    if (screen !== undefined)
      screen.show([...(last === undefined ? [] : render(last.view)), ...(isWaiting ? [waits] : [])]);
    else if (last !== undefined) tell(last);
    if (screen === undefined && isWaiting && !isTold) terminal.note(`fleet: ${waits}`);
    isTold ||= isWaiting;
    if (isOver) return last;
    wasRunning = isAlive;
    if (!(await pause(wish.intervalMs, signal))) return undefined;
  }
}

/** All of it once, and then every change. */
function toLines(terminal: Terminal, render: (view: StatusView) => string[]): (now: Look) => void {
  let before: StatusView | undefined;
  return ({ view }) => {
    const lines = before === undefined ? render(view) : describeChanges(before, view).map(stamp);
    for (const line of lines) terminal.line(line);
    before = view;
  };
}

/** One object a line, whenever something but the time has changed. */
function toJsonLines(terminal: Terminal): (now: Look) => void {
  let told = '';
  return ({ state, view }) => {
    const object = toStatusJson(state, view);
    const words = JSON.stringify({ ...object, elapsed_ms: null, estimated_remaining_ms: null });
    if (words !== told) terminal.line(JSON.stringify(object));
    told = words;
  };
}

function isLive(terminal: Terminal, { json }: WatchWish): boolean {
  return !json && terminal.stdout.isTTY;
}

function isRunning({ view }: Look): boolean {
  return view.orchestrator !== undefined;
}

function isComplete({ view }: Look): boolean {
  return view.runState === 'complete';
}

function stamp(line: string): string {
  return `${new Date().toISOString().slice(11, 19)} ${line}`;
}

async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { signal }).catch(() => false);
}
