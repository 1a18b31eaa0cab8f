import { createHash } from 'node:crypto';
import {
  CLIENT_CAPABILITIES_META_KEY,
  acceptedContent,
  inputRequired,
  type InputRequiredResult,
  type ServerContext,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import { HotcellError } from '../core/errors.ts';
import type { Permission } from '../wire/permissions.ts';
import { printable } from './printable.ts';
import type { Served } from './tool.ts';

const QUESTION = 'permission';
/** Of one call. A code that finds something new to ask for again and again is not a question any more. */
export const MOST_QUESTIONS = 4;

/**
 * What we remember between question and answer. It travels through the client, signed; what would be granted is not in
 * it, but is looked up again on our side.
 */
export const AskedState = z.object({
  tenant: z.string(),
  session: z.string(),
  run: z.string().optional(),
  /** Of the arguments that the question was about. */
  digest: z.string(),
  questions: z.int(),
});
export type AskedState = z.infer<typeof AskedState>;

const Decision = z.object({
  decision: z
    .enum(['allow', 'deny'])
    .describe('allow: until this session ends; deny: nothing changes')
    .meta({ title: 'Allow this?' }),
});

const Capabilities = z.object({
  elicitation: z.object({ form: z.unknown(), url: z.unknown() }).partial().optional(),
});

/** A question to somebody who cannot be asked is an error of the protocol, so this comes first. */
export function canAsk({ server }: Served, { mcpReq: { envelope } }: ServerContext): boolean {
  // In the newer era every request says it, in the older one the handshake did.
  const said: unknown =
    envelope === undefined
      ? server.server.getClientCapabilities()
      : Reflect.get(envelope, CLIENT_CAPABILITIES_META_KEY);
  const elicitation = Capabilities.safeParse(said).data?.elicitation;
  if (elicitation === undefined) return false;
  // Whoever names no kind of question means the only one that there was at first.
  return elicitation.form !== undefined || elicitation.url === undefined;
}

export function digestOf(given: unknown): string {
  return createHash('sha256').update(JSON.stringify(given)).digest('base64url');
}

/** The question, which ends this round of the call. */
export async function ask(
  served: Served,
  context: ServerContext,
  question: { readonly message: string; readonly state: Omit<AskedState, 'tenant'> },
): Promise<InputRequiredResult> {
  const state: AskedState = { tenant: served.desk.owner.tenant, ...question.state };
  return inputRequired({
    inputRequests: {
      [QUESTION]: inputRequired.elicit({ message: question.message, requestedSchema: Decision }),
    },
    requestState: await served.mintState(state, context),
  });
}

/** What was asked in the round before, if this call comes with an answer. Throws if the answer is to another question. */
export function readAsked(served: Served, context: ServerContext, given: unknown): AskedState | undefined {
  const state: unknown = context.mcpReq.requestState();
  if (state === undefined) return undefined;
  const parsed = AskedState.safeParse(state);
  // SECURITY: a yes counts for the tenant and the very arguments that it was given for.
  if (
    parsed.success &&
    parsed.data.tenant === served.desk.owner.tenant &&
    parsed.data.digest === digestOf(given)
  )
    return parsed.data;
  throw new HotcellError('INVALID_REQUEST', 'the answer belongs to another call', {
    hint: 'Call the tool again without requestState.',
  });
}

export function isAllowed({ mcpReq: { inputResponses } }: ServerContext): boolean {
  return acceptedContent(inputResponses, QUESTION, Decision)?.decision === 'allow';
}

/** What a permission allows, in words for the person who decides. */
export function describePermission(permission: Permission): string {
  switch (permission.type) {
    case 'http': {
      const methods = permission.methods?.join(', ') ?? 'all methods';
      return printable(`network: ${methods} to ${permission.host}, paths ${permission.pathPattern ?? '*'}`);
    }
    case 'file':
      return printable(`files of this machine: ${permission.operations.join(' and ')} ${permission.path}`);
    case 'env':
      return printable(`variables of the environment: ${permission.variables.join(', ')}`);
  }
}
