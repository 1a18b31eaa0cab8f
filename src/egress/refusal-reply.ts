import { printable } from './refusal-log.ts';
import { toText, type Destination, type Refused } from './host-name.ts';

/** An answer of the gate itself: that it refuses, or that there is no way. */
export interface GateReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** For sessions. */
export const HOW_TO_ALLOW =
  'Allow it with "network" when the session is made, or with PUT /v1/sessions/{id}/egress while it runs.';

/** To whoever does not know the key. */
export const NOT_FOR_YOU: GateReply = toReply(407, 'hotcell: this proxy is for one cell only\n', {
  'proxy-authenticate': 'Basic realm="hotcell"',
});

export function toRefusalReply(
  to: Destination | undefined,
  { code, reason }: Refused,
  howToAllow: string,
): GateReply {
  const what = to === undefined ? 'egress' : `egress to ${printable(toText(to))}`;
  const hint = code === 'not_allowed' || code === 'port' ? `${howToAllow}\n` : '';
  return toReply(code === 'malformed' ? 400 : 403, `hotcell: ${what} refused: ${reason}\n${hint}`, {
    'x-hotcell-refused': code,
  });
}

export function toFailureReply(to: Destination, why: string): GateReply {
  return toReply(502, `hotcell: ${toText(to)} cannot be reached: ${why}\n`, {});
}

function toReply(status: number, body: string, headers: Readonly<Record<string, string>>): GateReply {
  const length = String(Buffer.byteLength(body));
  return {
    status,
    headers: { 'content-type': 'text/plain', 'content-length': length, connection: 'close', ...headers },
    body,
  };
}

/** As bytes, for a connection that no HTTP server looks after any more. */
export function encodeReply({ status, headers, body }: GateReply): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${status === 502 ? 'Bad Gateway' : 'Refused'}\r\n${lines.join('')}\r\n${body}`;
}
