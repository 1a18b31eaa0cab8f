import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { HotcellError } from '../core/errors.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import type { FsReply } from '../wire/session-files.ts';
import type { Permission } from '../wire/permissions.ts';
import type {
  CodeRequest,
  Owner,
  Permissions,
  Snippet,
  Snippets,
  Workbench,
  WorkbenchFacts,
  WorkbenchFiles,
  Workbenches,
} from '../workbench/api.ts';
import { ScriptedRun } from './scripted-run.double.ts';
import { EXECUTION_MODES } from '../workbench/api.ts';

/** A host that nobody may be allowed to reach. */
export const UNGRANTABLE_HOST = 'never.test';

/** A use case whose runs do what their code says, and that remembers what the door asked for. */
export class ScriptedWorkbenches implements Workbenches {
  readonly snippets: Snippets = new ScriptedSnippets();
  readonly all: ScriptedWorkbench[] = [];
  /** What the next call throws. */
  failure: Error | undefined;
  closed = false;

  facts(): WorkbenchFacts {
    return {
      mode: EXECUTION_MODES[0],
      driver: 'scripted',
      runtime: 'none',
      languages: ['typescript'],
      limits: DEFAULT_LIMITS,
      idleMs: 60_000,
      notes: [],
    };
  }

  open(owner: Owner): ScriptedWorkbench {
    if (this.failure !== undefined) throw this.failure;
    const workbench = new ScriptedWorkbench(owner);
    this.all.push(workbench);
    return workbench;
  }

  find(owner: Owner, id: string): ScriptedWorkbench {
    const found = this.all.find((one) => one.id === id && one.owner.tenant === owner.tenant);
    if (found === undefined) throw new HotcellError('WORKBENCH_UNKNOWN', 'there is no such session');
    if (found.closed) throw new HotcellError('WORKBENCH_UNKNOWN', 'the session has expired');
    return found;
  }

  list(owner: Owner): readonly ScriptedWorkbench[] {
    return this.all.filter((one) => !one.closed && one.owner.tenant === owner.tenant);
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.all(this.all.map((one) => one.close()));
  }
}

export class ScriptedWorkbench implements Workbench {
  readonly id = `bench_${randomUUID()}`;
  readonly owner: Owner;
  readonly started: ScriptedRun[] = [];
  readonly permissions = new ScriptedPermissions();
  readonly content = new Map<string, Uint8Array>();
  readonly files: WorkbenchFiles = {
    read: (path) => Promise.resolve(this.#read(path)),
    write: (files) => {
      for (const { path, content } of files) this.content.set(path, content);
      return Promise.resolve();
    },
  };
  closed = false;

  constructor(owner: Owner) {
    this.owner = owner;
  }

  run(request: CodeRequest): ScriptedRun {
    const run = new ScriptedRun(`run_${randomUUID()}`, request, {
      files: this.content,
      allows: (permission) => this.permissions.has(permission),
    });
    this.started.push(run);
    // As the real ones: whoever asked may listen before anything happens.
    setImmediate(() => run.start());
    return run;
  }

  findRun(id: string): ScriptedRun {
    const run = this.started.find((one) => one.id === id);
    if (run === undefined) throw new HotcellError('RUN_UNKNOWN', 'there is no such run');
    return run;
  }

  runs(): readonly ScriptedRun[] {
    return this.started;
  }

  expiresAt(): number {
    return Date.now() + 60_000;
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.all(this.started.filter(({ phase }) => phase !== 'ended').map((run) => run.cancel()));
  }

  #read(path: string): FsReply {
    const bytes = this.content.get(path);
    if (bytes !== undefined) return asFile(path, Buffer.from(bytes));
    if (path !== '.') throw new HotcellError('FILE_NOT_FOUND', `there is no ${path}`);
    const entries = [...this.content].map(([name, { length: size }]) => ({
      name,
      kind: 'file' as const,
      size,
      mode: 0o644,
    }));
    return { kind: 'folder', path, entries };
  }
}

function asFile(path: string, bytes: Buffer): FsReply {
  const isText = Buffer.from(bytes.toString()).equals(bytes);
  const encoding = isText ? 'utf8' : 'base64';
  return { kind: 'file', path, content: bytes.toString(encoding), encoding, size: bytes.length, mode: 0o644 };
}

class ScriptedPermissions implements Permissions {
  readonly #granted: Permission[] = [];

  list(): readonly Permission[] {
    return this.#granted;
  }

  has(wanted: Permission): boolean {
    return this.#granted.some((one) => isDeepStrictEqual(one, wanted));
  }

  grant(permission: Permission): void {
    if (permission.type === 'http' && permission.host === UNGRANTABLE_HOST)
      throw new HotcellError('PERMISSION_REFUSED', 'the operator lets nobody reach it');
    this.#granted.push(permission);
  }

  revoke(permission: Permission): boolean {
    const at = this.#granted.findIndex((one) => isDeepStrictEqual(one, permission));
    if (at >= 0) this.#granted.splice(at, 1);
    return at >= 0;
  }
}

class ScriptedSnippets implements Snippets {
  readonly #code = new Map<string, string>();

  save(owner: Owner, { name, code }: { readonly name: string; readonly code: string }): Promise<Snippet> {
    this.#code.set(keyOf(owner, name), code);
    return Promise.resolve({ name, description: 'scripted' });
  }

  list({ tenant }: Owner): Promise<readonly Snippet[]> {
    const names = [...this.#code.keys()].filter((key) => key.startsWith(`${tenant}/`));
    return Promise.resolve(
      names.map((key) => ({ name: key.slice(tenant.length + 1), description: 'scripted' })),
    );
  }

  get(owner: Owner, name: string): Promise<Snippet & { readonly code: string }> {
    const code = this.#code.get(keyOf(owner, name));
    return code === undefined
      ? Promise.reject(new HotcellError('SNIPPET_UNKNOWN', `there is no snippet ${name}`))
      : Promise.resolve({ name, description: 'scripted', code });
  }

  async remove(owner: Owner, name: string): Promise<void> {
    await this.get(owner, name);
    this.#code.delete(keyOf(owner, name));
  }
}

function keyOf({ tenant }: Owner, name: string): string {
  return `${tenant}/${name}`;
}
