import type { ExecRequest } from '../core/exec.ts';
import type { CellNetwork } from '../egress/cell-network.ts';
import { matchesStars } from '../lib/match-stars.ts';
import type { Permission } from '../wire/permissions.ts';
import { pathsOf } from './code-request.ts';

/** What Bun must not do by itself; see guest/preload/hooks.ts for the rest. */
const FLAGS = ['--no-install', '--no-env-file', '--no-addons', '--no-ffi-cc', '--no-macros'];

/** Names of variables that tell the hooks what to do. */
const OURS = 'HOTCELL_';

export interface BunSubject {
  readonly permissions: readonly Permission[];
  /** Variables that could be granted, by name. */
  readonly values: Readonly<Record<string, string>>;
  /** Undefined: no way out. */
  readonly network: Pick<CellNetwork, 'variables' | 'port'> | undefined;
  /** Below the folder of packages: where `node_modules` is. */
  readonly modules?: string;
}

/**
 * The command that runs `{code}/main.ts` by Bun with these permissions. It is the same in every kind of cell; `reach`
 * counts where walls are made around commands. SECURITY: only variables that were granted are in it.
 */
export function toBunRequest({ permissions, values, network, modules }: BunSubject): ExecRequest {
  const files = permissions.filter((permission) => permission.type === 'file');
  const granted = Object.entries(values).filter(
    ([name]) => !name.startsWith(OURS) && isGranted(permissions, name),
  );
  const names = new Set(granted.map(([name]) => name));
  return {
    argv: [
      'bun',
      'run',
      ...FLAGS,
      '--config={guest}/preload/bunfig.toml',
      '--preload',
      '{guest}/preload/hooks.ts',
      '{code}/main.ts',
    ],
    env: {
      HOME: '{workdir}',
      TMPDIR: '{workdir}',
      BUN_INSTALL_CACHE_DIR: '{packages}',
      HOTCELL_PLACES: '{workdir}\n{code}\n{packages}\n{guest}',
      ...(modules === undefined ? {} : { NODE_PATH: `{packages}/${modules}/node_modules` }),
    },
    verbatim: {
      argv: [],
      env: {
        ...Object.fromEntries(granted),
        ...network?.variables,
        HOTCELL_POLICY: JSON.stringify({
          http: permissions.flatMap((permission) => (permission.type === 'http' ? [toRule(permission)] : [])),
          file: files.map(({ path, operations }) => ({ path, operations })),
          withheld: Object.keys(values).filter((name) => !names.has(name)),
          gate: network?.variables['HTTP_PROXY'],
        }),
      },
    },
    reach: {
      read: pathsOf(permissions, 'read'),
      write: pathsOf(permissions, 'write'),
      port: network?.port,
      programs: false,
    },
  };
}

function toRule({ host, pathPattern, methods }: Extract<Permission, { type: 'http' }>): object {
  return { host, pathPattern, methods };
}

/** Does a permission name this variable? `*` in it stands for anything. */
export function isGranted(permissions: readonly Permission[], name: string): boolean {
  return permissions.some(
    (permission) =>
      permission.type === 'env' && permission.variables.some((pattern) => matchesStars(pattern, name)),
  );
}
