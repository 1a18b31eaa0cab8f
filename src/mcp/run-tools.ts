import type { InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import { toHotcellError } from '../core/errors.ts';
import {
  CancelRunArguments,
  GetRunArguments,
  RunCodeArguments,
  RunReply,
  type RunReply as Reply,
} from '../wire/run-code.ts';
import type { CodeRequest, CodeResult, CodeRun, Workbench } from '../workbench/api.ts';
import { awaitRun } from './await-run.ts';
import {
  MOST_QUESTIONS,
  ask,
  canAsk,
  describePermission,
  digestOf,
  isAllowed,
  readAsked,
  type AskedState,
} from './consent.ts';
import { printable } from './printable.ts';
import { toRunContent } from './run-content.ts';
import { toRunReply } from './run-reply.ts';
import { toRunText } from './run-text.ts';
import { READS, REPLACES, addTool, type Served, type ToolReply } from './tool.ts';

type RunToolReply = ToolReply & { readonly structured: Reply };

const minutes = (ms: number): string => `${Math.round(ms / 6000) / 10} minutes`;

export function addRunTools(served: Served): void {
  const { settings, desk } = served;
  const lifetime = desk.keepsSession
    ? `Calls without session_id share one session of this connection: its files, packages and permissions stay until the connection ends or nothing happens for ${minutes(settings.idleMs)}.`
    : 'A call without session_id gets a session of its own that is gone with the reply; for more than one call, use create_session.';
  addTool(served, {
    name: 'run_code',
    title: 'Run code',
    description:
      'Runs a program in a sandbox: TypeScript with Bun unless language says otherwise. npm packages that it imports are ' +
      'installed first. It has no network, no files and no variables of this machine unless a permission was granted ' +
      `(grant_permission). ${lifetime} Print what you want to see. A run that takes longer than wait_ms (default ` +
      `${settings.waitMs}) goes on: the reply then says "running", and get_run has the result.`,
    input: RunCodeArguments,
    output: RunReply,
    annotations: {
      readOnlyHint: false,
      destructiveHint: false,
      idempotentHint: false,
      openWorldHint: true,
    },
    act: (given, context) => runCode(served, given, context),
  });
  addTool(served, {
    name: 'get_run',
    title: 'Get a run',
    description:
      'The result of a run, or its output so far if it does not end within wait_ms (0: now; default ' +
      `${settings.waitMs}). Runs are known as long as their session.`,
    input: GetRunArguments,
    output: RunReply,
    annotations: READS,
    act: async (given, context) => {
      const { workbench, run } = await desk.findRun(given.run_id, given.session_id);
      const waitMs = given.wait_ms ?? settings.waitMs;
      const result = await awaitRun(run, { waitMs, context, cancels: false, log: served.log });
      return toReply(run, result ?? (await endedResult(run)), workbench, {});
    },
  });
  addTool(served, {
    name: 'cancel_run',
    title: 'Cancel a run',
    description: 'Ends a run with everything that it started. The reply has the output until then.',
    input: CancelRunArguments,
    output: RunReply,
    annotations: REPLACES,
    act: async (given) => {
      const { workbench, run } = await desk.findRun(given.run_id, given.session_id);
      await run.cancel();
      const reply = await toReply(run, await run.result, workbench, {});
      // That it was cancelled is what was asked for.
      return { ...reply, failed: false };
    },
  });
}

async function runCode(
  served: Served,
  given: RunCodeArguments,
  context: ServerContext,
): Promise<RunToolReply | InputRequiredResult> {
  const { desk } = served;
  const asked = readAsked(served, context, given);
  // A session for this call only; between question and answer it waits for the answer, not longer than its idle time.
  const isOwn = given.session_id === undefined && !desk.keepsSession;
  const workbench =
    isOwn && asked === undefined ? await desk.open() : await desk.find(asked?.session ?? given.session_id);
  let keeps = false;
  try {
    const outcome =
      asked === undefined ? { warnings: [] } : await applyAnswer(workbench, asked, isAllowed(context));
    if (outcome.declined !== undefined)
      return await toReply(outcome.declined.run, outcome.declined.result, workbench, {
        gone: isOwn,
        warnings: outcome.warnings,
      });
    const run = workbench.run(toRequest(given));
    const waitMs = given.wait_ms ?? served.settings.waitMs;
    const result =
      (await awaitRun(run, { waitMs, context, cancels: true, log: served.log })) ?? (await endedResult(run));
    const questions = asked?.questions ?? 0;
    if (result?.status === 'denied' && questions < MOST_QUESTIONS && canAsk(served, context)) {
      keeps = true;
      return await askForDenied(served, context, {
        result,
        state: { session: workbench.id, run: run.id, digest: digestOf(given), questions: questions + 1 },
      });
    }
    keeps = result === undefined && !context.mcpReq.signal.aborted;
    return await toReply(run, result, workbench, { gone: isOwn && !keeps, warnings: outcome.warnings });
  } finally {
    if (isOwn && !keeps) served.afterwards(workbench.close());
  }
}

/** Undefined if it still runs. */
function endedResult(run: CodeRun): Promise<CodeResult | undefined> {
  return run.phase === 'ended' ? run.result : Promise.resolve(undefined);
}

function toRequest(given: RunCodeArguments): CodeRequest {
  return {
    code: given.code,
    language: given.language,
    packages: given.packages,
    snippets: given.snippets,
    files: given.files.map(({ path, content, encoding }) => ({
      path,
      content: Buffer.from(content, encoding),
    })),
    stdin: given.stdin,
    timeoutMs: given.timeout_ms ?? given.timeout,
  };
}

async function askForDenied(
  served: Served,
  context: ServerContext,
  asked: { readonly result: CodeResult; readonly state: Omit<AskedState, 'tenant'> },
): Promise<InputRequiredResult> {
  const lines = asked.result.denials.map(
    ({ action, permission }) => `- ${describePermission(permission)}\n  (it tried: ${printable(action)})`,
  );
  const message = [
    'Code that is being run wants to reach what it may not. Allowing it would grant exactly this to the session, and run the code again from its beginning:',
    ...lines,
  ].join('\n');
  return ask(served, context, { message, state: asked.state });
}

interface Answered {
  /** What to report instead of running again. */
  readonly declined?: { readonly run: CodeRun; readonly result: CodeResult };
  readonly warnings: readonly string[];
}

async function applyAnswer(workbench: Workbench, asked: AskedState, allowed: boolean): Promise<Answered> {
  const run = workbench.findRun(asked.run ?? '');
  const result = await run.result;
  const decline = (warning: string): Answered => ({ declined: { run, result }, warnings: [warning] });
  if (!allowed) return decline('the user was asked for this permission and did not allow it');
  try {
    // SECURITY: what the run was denied, as we know it; nothing of what the client sent back.
    for (const { permission } of result.denials) workbench.permissions.grant(permission);
  } catch (thrown) {
    const { message, hint } = toHotcellError(thrown);
    return decline(`the user allowed it, but ${message} (${hint})`);
  }
  return { warnings: [] };
}

interface ReplyOptions {
  /** The session ends with the reply. */
  readonly gone?: boolean;
  readonly warnings?: readonly string[];
}

async function toReply(
  run: CodeRun,
  result: CodeResult | undefined,
  workbench: Workbench,
  { gone = false, warnings = [] }: ReplyOptions,
): Promise<RunToolReply> {
  const structured = toRunReply(run, result, { sessionId: gone ? undefined : workbench.id, warnings });
  return {
    structured,
    text: toRunText(structured),
    content: await toRunContent(structured, workbench, { linked: !gone }),
    failed: structured.status !== 'ok' && structured.status !== 'running',
  };
}
