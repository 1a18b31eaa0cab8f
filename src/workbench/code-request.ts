import type { ExecRequest } from '../core/exec.ts';
import type { Language } from '../core/language.ts';
import type { CellNetwork } from '../egress/cell-network.ts';
import type { Permission } from '../wire/permissions.ts';

export interface CodePlan {
  readonly language: Language;
  /** Name of the file in the folder of the code. */
  readonly main: string;
  readonly cwd: string;
  readonly permissions: readonly Permission[];
  readonly values: Readonly<Record<string, string>>;
  readonly network: CellNetwork | undefined;
  /** Of the way out. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Where Bun looks for packages that it has. */
const OWN_VARIABLES = { BUN_INSTALL_CACHE_DIR: '{packages}' } as const;

/** Left to itself, Bun opens tunnels for https, of which the gate sees the host only. */
const SHOWING_REQUESTS = ['--preload', '{guest}/preload/gate-fetch.ts'];

/** The command that the language table has for this code. */
export function toLanguageRequest(plan: CodePlan): ExecRequest {
  const { language, network, permissions } = plan;
  const [program, ...rest] = language.command.map((word) =>
    word.replaceAll('{filepath}', () => `{code}/${plan.main}`),
  );
  if (program === undefined) throw new RangeError('a language needs a command');
  const seen = program === 'bun' && network !== undefined && permissions.some(isNarrow);
  const env = {
    ...OWN_VARIABLES,
    ...plan.variables,
    ...(seen ? { HOTCELL_POLICY: toPolicy(network) } : {}),
  };
  return {
    argv: [program, ...(seen ? SHOWING_REQUESTS : []), ...rest],
    env,
    // SECURITY: what was granted cannot change what is ours, such as the way to the gate.
    verbatim: { argv: [], env: without(plan.values, env) },
    cwd: plan.cwd,
    reach: {
      read: pathsOf(permissions, 'read'),
      write: pathsOf(permissions, 'write'),
      port: network?.port,
      programs: true,
    },
  };
}

/** Only a part of a host: the gate has to see requests. */
function isNarrow(permission: Permission): boolean {
  return (
    permission.type === 'http' && (permission.pathPattern !== undefined || permission.methods !== undefined)
  );
}

function toPolicy({ variables }: CellNetwork): string {
  return JSON.stringify({ asksGate: true, gate: variables['HTTP_PROXY'] });
}

/** As it is, but in the work folder and with our variables. */
export function inPlace(request: ExecRequest, cwd: string): ExecRequest {
  return { ...request, cwd, env: { ...request.env, ...OWN_VARIABLES } };
}

export function pathsOf(permissions: readonly Permission[], operation: 'read' | 'write'): string[] {
  return permissions.flatMap((permission) =>
    permission.type === 'file' && permission.operations.includes(operation) ? [permission.path] : [],
  );
}

function without(
  values: Readonly<Record<string, string>>,
  taken: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(taken, name)));
}
