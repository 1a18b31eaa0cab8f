import type { Cell } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import type { Exec, ExecRequest } from '../../src/core/exec.ts';

/** Instead of `cell.exec`. */
export type ExecInCell = (cell: Cell, request: ExecRequest) => Promise<Exec>;

/** The driver, but that every command of its cells is started by `exec`. */
export function withExec(driver: Driver, exec: ExecInCell): Driver {
  return replace(driver, {
    create: async (...args: Parameters<Driver['create']>) => {
      const cell = await driver.create(...args);
      return replace(cell, { exec: (request: ExecRequest) => exec(cell, request) });
    },
  });
}

function replace<T extends object>(target: T, methods: Readonly<Partial<T>>): T {
  return new Proxy(target, {
    get: (_, name) => {
      const own: unknown = Reflect.get(methods, name);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
