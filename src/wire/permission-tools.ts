import * as z from 'zod';
import { HTTP_METHODS, Permission } from './permissions.ts';
import { SessionId } from './run-code.ts';

const kinds = { http: ['host', 'pathPattern', 'methods'], file: ['path', 'operations'], env: ['variables'] };

/**
 * Arguments of `grant_permission` and `revoke_permission`: the fields of a permission side by side, since many clients
 * do not understand alternatives at the top of a schema.
 */
export const PermissionArguments = z
  .strictObject({
    type: z.enum(['http', 'file', 'env']).describe('http: host; file: path and operations; env: variables'),
    host: z.string().max(253).optional().describe('http: host name, *.name, or either with :port'),
    pathPattern: z.string().max(2048).optional().describe('http: path such as /v1/*; without it all paths'),
    methods: z.array(z.enum(HTTP_METHODS)).max(7).optional().describe('http: without it all methods'),
    path: z.string().max(4096).optional().describe('file: absolute path of a file or folder'),
    operations: z
      .array(z.enum(['read', 'write']))
      .max(2)
      .optional()
      .describe('file: what may be done with it'),
    variables: z.array(z.string().max(256)).max(100).optional().describe('env: names; * stands for anything'),
    description: z.string().max(500).optional().describe('why; for people'),
    session_id: SessionId.optional(),
  })
  .superRefine(({ session_id: _session, ...given }, context) => {
    const parsed = Permission.safeParse(given);
    if (parsed.success) return;
    for (const { path, message } of parsed.error.issues) {
      context.addIssue({
        code: 'custom',
        path: [...path],
        message: `${message} (${given.type} takes: ${kinds[given.type].join(', ')})`,
      });
    }
  });
export type PermissionArguments = z.infer<typeof PermissionArguments>;

export function toPermission({ session_id: _session, ...given }: PermissionArguments): Permission {
  return Permission.parse(given);
}

export const PermissionsView = z.object({ session_id: z.string(), permissions: z.array(Permission) });
export const RevokedView = PermissionsView.extend({
  revoked: z.boolean().describe('whether there was such a permission'),
});
