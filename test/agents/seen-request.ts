import type { IncomingMessage } from 'node:http';

interface Message {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly text?: string }[];
}

export interface RequestBody {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly Message[];
  readonly system?: string | readonly { readonly type: string; readonly text?: string }[];
  readonly metadata?: { readonly user_id?: string };
}

/** What the agent has asked, as the tests see it. */
export interface SeenRequest {
  /** Whom it was about: a task by its id, `plan` or `design`; undefined where nobody can tell. */
  readonly conversation: string | undefined;
  /** From 1 on: each start of the agent is one. */
  readonly attempt: number;
  /** Of the key that signed it: `authorization` or `x-api-key`. */
  readonly authorization: string | undefined;
  readonly apiKey: string | undefined;
  readonly model: string;
  /** How many messages the conversation has. */
  readonly messages: number;
  /** What the agent was asked by us. */
  readonly prompt: string;
  readonly text: string;
  readonly body: RequestBody;
}

const CONVERSATIONS: readonly (readonly [RegExp, string | undefined])[] = [
  [/^# Task ([A-Za-z][\w-]*):/, undefined],
  [/^Write the requirements of the feature /, 'plan'],
  [/^Cut the work on the feature /, 'design'],
];

/** Which conversation it is, by the prompt at its beginning. */
export function conversationOf(prompt: string): string | undefined {
  for (const [pattern, name] of CONVERSATIONS) {
    const found = pattern.exec(prompt);
    if (found !== null) return name ?? found[1];
  }
  return undefined;
}

/** The agent puts words of its own before it, in blocks of theirs. */
export function promptOf({ messages }: RequestBody): string {
  const texts = messages.filter(({ role }) => role === 'user').flatMap(textsOf);
  return texts.find((text) => conversationOf(text) !== undefined) ?? texts.join('\n');
}

function textsOf({ content }: Message): string[] {
  return typeof content === 'string' ? [content] : content.map(({ text = '' }) => text);
}

/** The same in all requests of one start of the agent. */
export function sessionOf({ metadata }: RequestBody): string {
  return /[0-9a-f]{8}-[0-9a-f-]{27}(?="?}?$)/.exec(metadata?.user_id ?? '')?.[0] ?? 'unknown';
}

/** The folder that the agent says it works in. */
export function folderOf(text: string): string {
  return /Primary working directory: (.*?)(?:\\n|$)/m.exec(text)?.[1] ?? '';
}

export function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
