import {
  DestroyedView,
  NoArguments,
  OfSessionArguments,
  SessionView,
  SessionsView,
  type SessionView as View,
} from '../wire/run-code.ts';
import type { Workbench } from '../workbench/api.ts';
import { READS, REPLACES, addTool, inBoth, type Served } from './tool.ts';

export function addSessionTools(served: Served): void {
  const { desk, settings } = served;
  const minutes = Math.round(settings.idleMs / 6000) / 10;
  addTool(served, {
    name: 'create_session',
    title: 'Create a session',
    description:
      'Makes a session: a sandbox with files, permissions and runs of its own, which begins empty. Pass its session_id to ' +
      `other tools. It ends with destroy_session, or when nothing uses it for ${minutes} minutes, and everything in it is ` +
      'gone then. The cell is started by the first run.',
    input: NoArguments,
    output: SessionView,
    annotations: { ...REPLACES, destructiveHint: false, idempotentHint: false },
    act: async () => inBoth(viewOf(await desk.open())),
  });
  addTool(served, {
    name: 'list_sessions',
    title: 'List sessions',
    description: 'The sessions that live, and until when.',
    input: NoArguments,
    output: SessionsView,
    annotations: READS,
    act: async () => {
      const workbenches = await desk.workbenches();
      return inBoth({ sessions: workbenches.list(desk.owner).map(viewOf) });
    },
  });
  addTool(served, {
    name: 'destroy_session',
    title: 'Destroy a session',
    description: 'Ends a session: its runs, its cell, its files, its permissions. It cannot be brought back.',
    input: OfSessionArguments,
    output: DestroyedView,
    annotations: REPLACES,
    act: async ({ session_id: id }) => {
      const workbench = await desk.find(id);
      await workbench.close();
      return inBoth({ session_id: workbench.id, destroyed: true as const });
    },
  });
}

function viewOf(workbench: Workbench): View {
  return {
    session_id: workbench.id,
    expiresAt: new Date(workbench.expiresAt()).toISOString(),
    runs: workbench.runs().length,
  };
}
