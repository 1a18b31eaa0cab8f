/** Addresses of resources, as templates and filled in. */
export const RUN_TEMPLATE = 'run://{run_id}/{part}';
export const FILE_TEMPLATE = 'session://{session_id}/files/{+path}';
export const CAPABILITIES_URI = 'runner://capabilities';

export const RUN_PARTS = ['stdout', 'stderr', 'result'] as const;
export type RunPart = (typeof RUN_PARTS)[number];

export function runUri(runId: string, part: RunPart): string {
  return `run://${encodeURIComponent(runId)}/${part}`;
}

export function fileUri(sessionId: string, path: string): string {
  const parts = path.split('/').map((part) => encodeURIComponent(part));
  return `session://${encodeURIComponent(sessionId)}/files/${parts.join('/')}`;
}
