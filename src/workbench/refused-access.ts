import { ruleFor } from '../egress/http-rule.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import type { Denial } from '../wire/permissions.ts';
import { toPermissionKey } from './permission-text.ts';

const MOST_DENIALS = 20;
const MOST_WARNINGS = 10;

/** What the gate refused: with the permission that would allow it, or the reason why none could. */
export function toRefusedAccess(refusals: readonly EgressRefusal[]): {
  readonly denials: Denial[];
  readonly warnings: string[];
} {
  const denials = new Map<string, Denial>();
  const warnings = new Set<string>();
  for (const refusal of refusals) {
    const rule = ruleFor(refusal);
    if (rule === undefined) {
      warnings.add(`${refusal.host}:${refusal.port} was refused: ${refusal.reason}`);
      continue;
    }
    const permission = { type: 'http', ...rule } as const;
    denials.set(toPermissionKey(permission), { action: toAction(refusal), permission });
  }
  return {
    denials: [...denials.values()].slice(0, MOST_DENIALS),
    warnings: [...warnings].slice(0, MOST_WARNINGS),
  };
}

function toAction({ host, port, scheme, method, path }: EgressRefusal): string {
  if (method === undefined || scheme === undefined) return `connect to ${host}:${port}`;
  return `${method} ${scheme}://${host}:${port}${path ?? ''}`;
}
