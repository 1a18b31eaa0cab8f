import type { Permission } from '../../src/wire/permissions.ts';

export const http = (host: string, pathPattern?: string, ...methods: 'GET'[]): Permission => ({
  type: 'http',
  host,
  ...(pathPattern === undefined ? {} : { pathPattern }),
  ...(methods.length === 0 ? {} : { methods }),
});
export const read = (path: string): Permission => ({ type: 'file', path, operations: ['read'] });
export const write = (path: string): Permission => ({ type: 'file', path, operations: ['write'] });
