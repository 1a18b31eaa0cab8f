import type { Permission } from '../wire/permissions.ts';

/** For people: `HTTP [GET] example.org/a`, `FILE [read] /data`, `ENV [A, B]`. */
export function toPermissionText(permission: Permission): string {
  switch (permission.type) {
    case 'http': {
      const methods = permission.methods === undefined ? '' : ` [${permission.methods.join(', ')}]`;
      return `HTTP${methods} ${permission.host}${permission.pathPattern ?? ''}`;
    }
    case 'file':
      return `FILE [${permission.operations.join(', ')}] ${permission.path}`;
    case 'env':
      return `ENV [${permission.variables.join(', ')}]`;
  }
}

/** Two permissions with the same key allow the same, whatever the order of their words or the reason given. */
export function toPermissionKey(permission: Permission): string {
  switch (permission.type) {
    case 'http': {
      const { host, pathPattern, methods } = permission;
      return JSON.stringify(['http', host.toLowerCase(), pathPattern ?? '', methods && toSet(methods)]);
    }
    case 'file':
      return JSON.stringify(['file', permission.path, toSet(permission.operations)]);
    case 'env':
      return JSON.stringify(['env', toSet(permission.variables)]);
  }
}

function toSet(words: readonly string[]): string[] {
  return [...new Set(words)].toSorted();
}
