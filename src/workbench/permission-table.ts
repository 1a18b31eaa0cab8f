import { realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { HotcellError } from '../core/errors.ts';
import type { HttpRule } from '../egress/cell-network.ts';
import { whyNoRule } from '../egress/http-rule.ts';
import type { Permission } from '../wire/permissions.ts';
import type { ExecutionMode, Permissions } from './api.ts';
import { isGranted } from './bun-request.ts';
import { coversHost, coversPath, coversVariable } from './grantable.ts';
import { toPermissionKey, toPermissionText } from './permission-text.ts';
import type { WorkbenchSettings } from './settings.ts';

export interface PermissionParts {
  readonly settings: Pick<WorkbenchSettings, 'grantable' | 'permissions'>;
  readonly mode: ExecutionMode;
  /** What variables there are. */
  readonly values: Readonly<Record<string, string>>;
  /** The rules for the network are others now. */
  onHttpChange(): void;
}

type FilePermission = Extract<Permission, { type: 'file' }>;

/** The permissions of one workbench. SECURITY: deny first; what the operator does not name cannot be granted. */
export class PermissionTable implements Permissions {
  readonly #parts: PermissionParts;
  readonly #granted = new Map<string, Permission>();

  constructor(parts: PermissionParts) {
    this.#parts = parts;
  }

  list(): readonly Permission[] {
    return [...this.#granted.values()];
  }

  grant(permission: Permission): void {
    const checked = this.#check(permission);
    const key = toPermissionKey(checked);
    const { permissions: most } = this.#parts.settings;
    if (!this.#granted.has(key) && this.#granted.size >= most) {
      throw refused(`there are ${most} permissions already`, 'Revoke one that is not needed any more.');
    }
    this.#granted.set(key, checked);
    if (checked.type === 'http') this.#parts.onHttpChange();
  }

  revoke(permission: Permission): boolean {
    // Paths are kept by their real name, and may be named either way.
    const keys = [permission, ...toRealFile(permission)].map(toPermissionKey);
    const found = keys.filter((key) => this.#granted.delete(key));
    if (found.length > 0 && permission.type === 'http') this.#parts.onHttpChange();
    return found.length > 0;
  }

  /** What the gate lets through. */
  httpRules(): HttpRule[] {
    return this.list().flatMap((permission) => {
      if (permission.type !== 'http') return [];
      const { type: _, description: __, ...rule } = permission;
      return [rule];
    });
  }

  /** The variables that could be granted, with their values. */
  grantableValues(): Record<string, string> {
    const { env } = this.#parts.settings.grantable;
    const entries = Object.entries(this.#parts.values).filter(([name]) => coversVariable(env, name));
    return Object.fromEntries(entries);
  }

  /** The variables that were granted, with their values. */
  values(): Record<string, string> {
    const granted = this.list();
    const entries = Object.entries(this.grantableValues()).filter(([name]) => isGranted(granted, name));
    return Object.fromEntries(entries);
  }

  /** Those that hold for a run that begins now. SECURITY: a path may have become a link to elsewhere since its grant. */
  current(): { readonly permissions: readonly Permission[]; readonly warnings: readonly string[] } {
    const isAsGranted = (permission: Permission): boolean =>
      permission.type !== 'file' || realNameOf(permission.path) === permission.path;
    const [permissions, lost] = [
      this.list().filter(isAsGranted),
      this.list().filter((one) => !isAsGranted(one)),
    ];
    return {
      permissions,
      warnings: lost.map((one) => `${toPermissionText(one)} does not hold: the path leads elsewhere by now`),
    };
  }

  #check(permission: Permission): Permission {
    switch (permission.type) {
      case 'http':
        return this.#checkHttp(permission);
      case 'file':
        return this.#checkFile(permission);
      case 'env':
        return this.#checkEnv(permission);
    }
  }

  #checkHttp(permission: Extract<Permission, { type: 'http' }>): Permission {
    const { type: _, description: __, ...rule } = permission;
    const problem = whyNoRule(rule);
    if (problem !== undefined) throw refused(problem);
    if (!coversHost(this.#parts.settings.grantable.http, permission.host)) {
      throw refused(
        `the operator does not let anybody reach ${permission.host} (setting mcp.grantable.http)`,
      );
    }
    return permission;
  }

  #checkFile(permission: FilePermission): Permission {
    if (this.#parts.mode === 'container') {
      throw refused(
        'code in a container cannot be let at files of this machine',
        'Use write_file to bring files in and read_file to get them out.',
      );
    }
    if (!isAbsolute(permission.path)) throw refused('the path must be absolute');
    const path = realNameOf(permission.path);
    if (path === undefined) throw refused(`there is no ${permission.path}`);
    const folders = this.#parts.settings.grantable.file.flatMap((folder) => realNameOf(folder) ?? []);
    if (!coversPath(folders, path)) {
      throw refused(`the operator does not let anybody at ${path} (setting mcp.grantable.file)`);
    }
    return { ...permission, path };
  }

  #checkEnv(permission: Extract<Permission, { type: 'env' }>): Permission {
    const { env } = this.#parts.settings.grantable;
    const missing = permission.variables.find((name) => !coversVariable(env, name));
    if (missing === undefined) return permission;
    throw refused(`the operator does not let anybody see ${missing} (setting mcp.grantable.env)`);
  }
}

function refused(message: string, hint?: string): HotcellError {
  return new HotcellError('PERMISSION_REFUSED', message, hint === undefined ? {} : { hint });
}

/** Without any link in it; also of what is still to be made in a folder that is there. */
function realNameOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    try {
      const parent = realpathSync(dirname(path));
      return dirname(path) === path ? undefined : join(parent, basename(path));
    } catch {
      return undefined;
    }
  }
}

function toRealFile(permission: Permission): Permission[] {
  if (permission.type !== 'file') return [];
  const path = realNameOf(permission.path);
  return path === undefined ? [] : [{ ...permission, path }];
}
