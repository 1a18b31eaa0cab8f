import type { ExecRequest } from '../core/exec.ts';

/** What is known of a run before its code is: everything that a Bun needs to be started for it. */
export interface WarmPlan {
  readonly request: ExecRequest;
  /** Names of what lies in the folder of the code: Bun looks once which files there are. */
  readonly files: readonly string[];
  /** Where the folder of the code links to for packages. */
  readonly modules: string | undefined;
  /** Loaded beforehand, in this order, such as `zod/v4`. */
  readonly packages: readonly string[];
}

export interface WarmSubject {
  readonly request: ExecRequest;
  readonly main: string;
  readonly snippets: Iterable<string>;
  readonly modules: string | undefined;
  /** What the code imports before its first line. */
  readonly eager: readonly string[];
}

const HOOKS = '{guest}/preload/hooks.ts';
const WAIT = '{guest}/preload/wait.ts';
const CODE = '{code}/';

/**
 * Packages are loaded beforehand only where all they can see then is what they will see later: files of the host change, and
 * what is refused by the gate is told to the run that asked.
 */
export function toWarmPlan({ request, main, snippets, modules, eager }: WarmSubject): WarmPlan {
  const names = [...snippets].toSorted();
  const { env, reach } = request;
  const hasNetwork = env['HTTP_PROXY'] !== undefined || reach?.port !== undefined;
  const seesOthers = reach === undefined || hasNetwork || reach.read.length > 0 || reach.write.length > 0;
  // A snippet may have to be loaded before a package.
  const packages = seesOthers || names.length > 0 || modules === undefined ? [] : eager;
  return { request, files: [main, ...names], modules, packages };
}

/** Two runs with the same key can be served by the same waiting process. SECURITY: it has secrets in it. */
export function toWarmKey({ request, files, modules, packages }: WarmPlan): string {
  return JSON.stringify([request, files, modules, packages]);
}

/** The same command, but it waits before it looks at the code. Undefined where that cannot be done. */
export function toWaitingRequest(request: ExecRequest): ExecRequest | undefined {
  if (request.argv.includes(HOOKS)) return { ...request, env: { ...request.env, HOTCELL_WAIT: '1' } };
  const [program, ...rest] = request.argv;
  const at = rest.findIndex((word) => word.startsWith(CODE));
  if (at === -1) return undefined;
  return { ...request, argv: [program, ...rest.toSpliced(at, 0, '--preload', WAIT)] };
}
