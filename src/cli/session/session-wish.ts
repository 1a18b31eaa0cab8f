import type { SessionOptions } from '../../client/runner-client.ts';
import { SessionLimits } from '../../wire/sessions.ts';
import { usageError } from '../exit-codes.ts';

/** What the flags of `create` say. */
export interface SessionWish {
  readonly user?: string;
  readonly network?: true | string;
  readonly ttl?: number;
  readonly setup?: true;
  readonly dotenv?: true;
  readonly limit?: Readonly<Record<string, string>>;
}

export function toSessionOptions({
  network,
  user,
  ttl,
  setup,
  dotenv,
  limit = {},
}: SessionWish): SessionOptions {
  const limits = SessionLimits.safeParse(
    Object.fromEntries(Object.entries(limit).map(([name, value]) => [name, Number(value)])),
  );
  if (!limits.success) {
    const [issue] = limits.error.issues;
    const name = issue?.path.join('.') ?? '';
    throw usageError(
      `--limit ${name}: ${issue?.message ?? 'is wrong'}`,
      `Use ${Object.keys(SessionLimits.shape).join(', ')} with a number, such as --limit cpus=2.`,
    );
  }
  const hosts = typeof network === 'string' ? network.split(',').filter((host) => host !== '') : network;
  return {
    ...(hosts === undefined ? {} : { network: hosts }),
    ...(user === undefined ? {} : { user_id: user }),
    ...(ttl === undefined ? {} : { ttl_s: ttl }),
    ...(setup === undefined ? {} : { setup }),
    ...(dotenv === undefined ? {} : { dotenv }),
    limits: limits.data,
  };
}
