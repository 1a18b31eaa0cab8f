import type { Cell, Isolation } from '../core/cell.ts';

/** What stays the same about a cell as long as there is one. */
export abstract class KnownCell {
  readonly id: string;
  readonly name: string;
  readonly isolation: Isolation;

  constructor({ id, name, isolation }: Pick<Cell, 'id' | 'name' | 'isolation'>) {
    this.id = id;
    this.name = name;
    this.isolation = isolation;
  }
}
