import type { ActKind } from '../plan.ts';
import type { Perform } from './act.ts';
import { background, command, deleteSession, files, hostileCommand, pause } from './commands.ts';
import { fleet } from './fleet.ts';
import { runCode } from './run-code.ts';
import { burst, droppedRun, run } from './runs.ts';
import { stream } from './streams.ts';
import { terminal } from './terminals.ts';

export const PERFORM: Readonly<Record<ActKind, Perform>> = {
  run,
  burst,
  'dropped-run': droppedRun,
  command,
  files,
  background,
  stream,
  terminal,
  pause,
  'hostile-command': hostileCommand,
  'delete-session': deleteSession,
  'run-code': runCode,
  fleet,
};
