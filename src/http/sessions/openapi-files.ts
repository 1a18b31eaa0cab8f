import type { ErrorCode } from '../../core/errors.ts';
import {
  OF_BODIES,
  jsonBody,
  jsonResponse,
  operation,
  queryParameter,
  type Facts,
  type Json,
} from '../openapi-parts.ts';
import {
  CHANGES_EXAMPLE,
  FS_EXAMPLE,
  PATCH_EXAMPLES,
  PATCH_REPLY_EXAMPLE,
  SYNC_EXAMPLES,
  SYNC_REPLY_EXAMPLE,
  UPLOAD_EXAMPLES,
} from './openapi-session-examples.ts';
import { OF_SESSION, SESSION_ID } from './openapi-sessions.ts';

const OF_READING: readonly ErrorCode[] = [
  ...OF_SESSION,
  'FILE_REFUSED',
  'FILE_NOT_FOUND',
  'FILE_TOO_LARGE',
  'SESSION_PAUSED',
];
const OF_WRITING: readonly ErrorCode[] = [...OF_READING, ...OF_BODIES, 'DISK_FULL', 'TOO_BUSY'];

/** The workspace of a session. */
export function filePaths(facts: Facts): Json {
  return {
    '/v1/sessions/{id}/upload': {
      post: operation(facts, {
        operationId: 'upload',
        summary: 'Writes files into the workspace, all of them or none',
        parameters: [SESSION_ID],
        requestBody: jsonBody('UploadRequest', UPLOAD_EXAMPLES),
        replies: { 200: jsonResponse('all are written', 'UploadReply', { synced: 2 }) },
        errors: OF_WRITING,
      }),
    },
    '/v1/sessions/{id}/sync': {
      post: operation(facts, {
        operationId: 'sync',
        summary: 'Makes the workspace like the files of the caller, by their hashes',
        parameters: [SESSION_ID],
        requestBody: jsonBody('SyncRequest', SYNC_EXAMPLES),
        replies: { 200: jsonResponse('what was done and is needed', 'SyncReply', SYNC_REPLY_EXAMPLE) },
        errors: OF_WRITING,
      }),
    },
    '/v1/sessions/{id}/apply_patch': {
      post: operation(facts, {
        operationId: 'applyPatch',
        summary: 'Applies a unified diff, all of it or nothing',
        parameters: [SESSION_ID],
        requestBody: jsonBody('ApplyPatchRequest', PATCH_EXAMPLES),
        replies: { 200: jsonResponse('every file is changed', 'ApplyPatchReply', PATCH_REPLY_EXAMPLE) },
        errors: [...OF_WRITING, 'PATCH_REFUSED'],
      }),
    },
    '/v1/sessions/{id}/changes': {
      get: operation(facts, {
        operationId: 'changes',
        summary: 'Files that commands have changed',
        parameters: [
          SESSION_ID,
          queryParameter('since', 'cursor of an earlier reply; without it, since the last sync or upload', {
            type: 'string',
          }),
        ],
        replies: { 200: jsonResponse('changes', 'ChangesReply', CHANGES_EXAMPLE) },
        errors: OF_READING,
      }),
    },
    '/v1/sessions/{id}/fs': {
      get: operation(facts, {
        operationId: 'readFile',
        summary: 'Reads a file or lists a folder of the workspace',
        parameters: [
          SESSION_ID,
          queryParameter('path', 'below the workspace', { type: 'string', default: '.' }),
        ],
        replies: { 200: jsonResponse('the file or the folder', 'FsReply', FS_EXAMPLE) },
        errors: OF_READING,
      }),
    },
    '/v1/sessions/{id}/archive': {
      get: operation(facts, {
        operationId: 'archive',
        summary: 'The whole workspace as a tar archive',
        parameters: [SESSION_ID],
        replies: {
          200: {
            description: 'a tar archive; a connection that is cut says that it is not complete',
            content: { 'application/x-tar': { schema: { type: 'string', format: 'binary' } } },
          },
        },
        errors: OF_READING,
      }),
    },
  };
}
