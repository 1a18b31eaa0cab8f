import type { ErrorCode } from '../../core/errors.ts';
import { OF_BODIES, jsonBody, jsonResponse, queryParameter, type Operation } from '../openapi-parts.ts';
import {
  CHANGES_EXAMPLE,
  FS_EXAMPLE,
  PATCH_EXAMPLES,
  PATCH_REPLY_EXAMPLE,
  SYNC_EXAMPLES,
  SYNC_REPLY_EXAMPLE,
  UPLOAD_EXAMPLES,
} from './openapi-session-examples.ts';
import { OF_SESSION } from './openapi-sessions.ts';

const OF_READING: readonly ErrorCode[] = [
  ...OF_SESSION,
  'FILE_REFUSED',
  'FILE_NOT_FOUND',
  'FILE_TOO_LARGE',
  'SESSION_PAUSED',
];
const OF_WRITING: readonly ErrorCode[] = [...OF_READING, ...OF_BODIES, 'DISK_FULL', 'TOO_BUSY'];

/** The workspace of a session. */
export const FILE_OPERATIONS: readonly Operation[] = [
  {
    at: 'post /v1/sessions/{id}/upload',
    operationId: 'upload',
    summary: 'Writes files into the workspace, all of them or none',
    requestBody: jsonBody('UploadRequest', UPLOAD_EXAMPLES),
    replies: { 200: jsonResponse('all are written', 'UploadReply', { synced: 2 }) },
    errors: OF_WRITING,
  },
  {
    at: 'post /v1/sessions/{id}/sync',
    operationId: 'sync',
    summary: 'Makes the workspace like the files of the caller, by their hashes',
    requestBody: jsonBody('SyncRequest', SYNC_EXAMPLES),
    replies: { 200: jsonResponse('what was done and is needed', 'SyncReply', SYNC_REPLY_EXAMPLE) },
    errors: OF_WRITING,
  },
  {
    at: 'post /v1/sessions/{id}/apply_patch',
    operationId: 'applyPatch',
    summary: 'Applies a unified diff, all of it or nothing',
    requestBody: jsonBody('ApplyPatchRequest', PATCH_EXAMPLES),
    replies: { 200: jsonResponse('every file is changed', 'ApplyPatchReply', PATCH_REPLY_EXAMPLE) },
    errors: [...OF_WRITING, 'PATCH_REFUSED'],
  },
  {
    at: 'get /v1/sessions/{id}/changes',
    operationId: 'changes',
    summary: 'Files that commands have changed',
    parameters: [
      queryParameter('since', 'cursor of an earlier reply; without it, since the last sync or upload', {
        type: 'string',
      }),
    ],
    replies: { 200: jsonResponse('changes', 'ChangesReply', CHANGES_EXAMPLE) },
    errors: OF_READING,
  },
  {
    at: 'get /v1/sessions/{id}/fs',
    operationId: 'readFile',
    summary: 'Reads a file or lists a folder of the workspace',
    parameters: [queryParameter('path', 'below the workspace', { type: 'string', default: '.' })],
    replies: { 200: jsonResponse('the file or the folder', 'FsReply', FS_EXAMPLE) },
    errors: OF_READING,
  },
  {
    at: 'get /v1/sessions/{id}/archive',
    operationId: 'archive',
    summary: 'The whole workspace as a tar archive',
    replies: {
      200: {
        description: 'a tar archive; a connection that is cut says that it is not complete',
        content: { 'application/x-tar': { schema: { type: 'string', format: 'binary' } } },
      },
    },
    errors: OF_READING,
  },
];
