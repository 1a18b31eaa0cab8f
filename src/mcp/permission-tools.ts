import type { InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import { HotcellError } from '../core/errors.ts';
import { PermissionArguments, PermissionsView, RevokedView, toPermission } from '../wire/permission-tools.ts';
import { OfSessionArguments } from '../wire/run-code.ts';
import type { Workbench } from '../workbench/api.ts';
import { ask, canAsk, describePermission, digestOf, isAllowed, readAsked } from './consent.ts';
import { READS, REPLACES, addTool, inBoth, type Served } from './tool.ts';

export function addPermissionTools(served: Served): void {
  const { desk } = served;
  addTool(served, {
    name: 'grant_permission',
    title: 'Grant a permission',
    description:
      'Lets the code of a session reach something outside of its sandbox: a host (http), a file or folder of this machine ' +
      '(file), variables of the environment (env). A denial says exactly which one is missing; grant no more than that. ' +
      'The user may be asked. It ends with the session. The operator decides what can be granted at all.',
    input: PermissionArguments,
    output: PermissionsView,
    // It opens the sandbox: code may then change what it could not reach before, so clients should ask.
    annotations: { ...REPLACES, openWorldHint: true },
    act: (given, context) => grant(served, given, context),
  });
  addTool(served, {
    name: 'list_permissions',
    title: 'List permissions',
    description: 'What the code of a session may reach outside of its sandbox. A new session has none.',
    input: OfSessionArguments,
    output: PermissionsView,
    annotations: READS,
    act: async ({ session_id: id }) => inBoth(viewOf(await desk.find(id))),
  });
  addTool(served, {
    name: 'revoke_permission',
    title: 'Revoke a permission',
    description: 'Takes a permission back; name it exactly as list_permissions shows it.',
    input: PermissionArguments,
    output: RevokedView,
    annotations: { ...REPLACES, destructiveHint: false },
    act: async (given) => {
      const workbench = await desk.find(given.session_id);
      const revoked = workbench.permissions.revoke(toPermission(given));
      return inBoth({ ...viewOf(workbench), revoked });
    },
  });
}

async function grant(served: Served, given: PermissionArguments, context: ServerContext) {
  const asked = readAsked(served, context, given);
  const workbench = await served.desk.find(asked?.session ?? given.session_id);
  const permission = toPermission(given);
  // SECURITY: where somebody can be asked, a model must not get around that person by calling this tool itself.
  if (canAsk(served, context)) {
    if (asked === undefined) {
      const message = `The model wants to allow the code of its session:\n- ${describePermission(permission)}`;
      const state = { session: workbench.id, digest: digestOf(given), questions: 1 };
      return (await ask(served, context, { message, state })) satisfies InputRequiredResult;
    }
    if (!isAllowed(context)) {
      throw new HotcellError('PERMISSION_REFUSED', 'the user was asked and did not allow it', {
        hint: 'Do without it, or tell the user why it is needed.',
      });
    }
  }
  workbench.permissions.grant(permission);
  return inBoth(viewOf(workbench));
}

function viewOf(workbench: Workbench) {
  return { session_id: workbench.id, permissions: [...workbench.permissions.list()] };
}
