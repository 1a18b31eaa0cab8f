import {
  ResourceNotFoundError,
  ResourceTemplate,
  type ReadResourceResult,
} from '@modelcontextprotocol/server';
import { HotcellError, toHotcellError } from '../core/errors.ts';
import { relativePathProblem } from '../core/job.ts';
import type { CodeRun, Workbench } from '../workbench/api.ts';
import { toRunReply } from './run-reply.ts';
import { CAPABILITIES_URI, FILE_TEMPLATE, RUN_PARTS, RUN_TEMPLATE } from './run-uris.ts';
import type { Served } from './tool.ts';

/** Output of runs, files of sessions, and what this server can do. */
export function addResources(served: Served): void {
  addCapabilities(served);
  const { server } = served;
  server.registerResource(
    'run',
    new ResourceTemplate(RUN_TEMPLATE, { list: undefined, complete: { part: () => [...RUN_PARTS] } }),
    {
      title: 'A run',
      description: 'Of a run of run_code: its stdout, its stderr, or its result as JSON.',
    },
    (uri, variables) => found(uri, () => readRun(served, uri, variables)),
  );
  server.registerResource(
    'file',
    new ResourceTemplate(FILE_TEMPLATE, { list: undefined }),
    { title: 'A file of a session', description: 'Below the work folder of a session.' },
    (uri, variables) => found(uri, () => readFile(served, uri, variables)),
  );
}

type Variables = Readonly<Record<string, string | string[]>>;

function addCapabilities({ server, desk, settings }: Served): void {
  server.registerResource(
    'capabilities',
    CAPABILITIES_URI,
    {
      title: 'What this runner can do',
      description: 'Execution mode, driver, languages, limits, idle time, and what is weaker here.',
      mimeType: 'application/json',
    },
    async (uri) => {
      const facts = (await desk.workbenches()).facts();
      const text = JSON.stringify({ ...facts, waitMs: settings.waitMs }, undefined, 2);
      return { contents: [{ uri: uri.href, mimeType: 'application/json', text }] };
    },
  );
}

/** Whatever is wrong with an address, there is nothing at it. */
async function found(uri: URL, read: () => Promise<ReadResourceResult>): Promise<ReadResourceResult> {
  try {
    return await read();
  } catch (thrown) {
    const { status, message } = toHotcellError(thrown);
    if (status >= 500) throw thrown;
    throw new ResourceNotFoundError(uri.href, message);
  }
}

async function readRun(served: Served, uri: URL, variables: Variables): Promise<ReadResourceResult> {
  const { workbench, run } = await served.desk.findRun(decoded(variables['run_id']));
  const part = RUN_PARTS.find((name) => name === decoded(variables['part']));
  if (part === undefined) throw new ResourceNotFoundError(uri.href);
  const text = part === 'result' ? await resultText(workbench, run) : run.output()[part];
  const mimeType = part === 'result' ? 'application/json' : 'text/plain';
  return { contents: [{ uri: uri.href, mimeType, text }] };
}

async function resultText(workbench: Workbench, run: CodeRun): Promise<string> {
  const result = run.phase === 'ended' ? await run.result : undefined;
  return JSON.stringify(toRunReply(run, result, { sessionId: workbench.id, whole: true }), undefined, 2);
}

async function readFile({ desk }: Served, uri: URL, variables: Variables): Promise<ReadResourceResult> {
  const workbench = await desk.find(decoded(variables['session_id']));
  const file = await workbench.files.read(pathOf(variables));
  if (file.kind === 'folder')
    return {
      contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify(file.entries) }],
    };
  return {
    contents: [
      file.encoding === 'utf8'
        ? { uri: uri.href, text: file.content }
        : { uri: uri.href, mimeType: 'application/octet-stream', blob: file.content },
    ],
  };
}

/** SECURITY: as strict as the tools, whose arguments a schema has checked. */
function pathOf(variables: Variables): string {
  const path = decoded(variables['path']);
  const problem = relativePathProblem(path);
  if (problem !== undefined) throw new HotcellError('FILE_REFUSED', `the path ${problem}`);
  return path;
}

function decoded(variable: string | string[] | undefined): string {
  const text = [variable ?? ''].flat().join('/');
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new HotcellError('BAD_REQUEST', 'the address is not well-formed', { cause: error });
  }
}
