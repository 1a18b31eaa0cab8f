import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from '../../src/drivers/process/find-program.ts';
import { isRoot } from './needs.ts';
import { tmpdirOnTmpfs } from './server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const NOBODY = 65534;

/** Why nobody cannot be played here, or undefined. */
export function whyNoNobody(): string | undefined {
  if (!isRoot) return 'only root can become somebody else';
  const missing = ['crun', 'unshare', 'setpriv'].filter((name) => findProgram(name) === undefined);
  return missing.length === 0 ? undefined : `${missing.join(', ')} is not installed`;
}

/**
 * Becomes nobody in a mount namespace of its own, where the checkout can be reached whatever lies above it. Every step is an
 * exec, so that the process is the one that the test has started.
 */
const BECOME_NOBODY = `
  set -eu
  checkout=$1 seen=$2 script=$3; shift 3
  mount --bind "$checkout" "$seen"
  exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups "$seen/node_modules/node/bin/node" "$seen/$script" "$@"
`;

/** A user of this machine who is not root, with folders of their own. */
export class Nobody implements Disposable {
  readonly folder = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-rootless-'));
  /** Nobody else gets in. */
  readonly home = this.#make('home', 0o700);
  readonly state = this.#make('state', 0o711);
  readonly #seen = join(this.folder, 'checkout');

  constructor() {
    chmodSync(this.folder, 0o711);
    mkdirSync(this.#seen);
  }

  #make(name: string, mode: number): string {
    const path = join(this.folder, name);
    mkdirSync(path);
    chmodSync(path, mode);
    // For nobody else there are no tests.
    if (isRoot) chownSync(path, NOBODY, NOBODY);
    return path;
  }

  /** The words of a command that runs a script of the checkout as nobody. */
  command(script: string): readonly [string, ...string[]] {
    return ['unshare', '-m', 'sh', '-c', BECOME_NOBODY, 'sh', ROOT, this.#seen, script];
  }

  /** All of it, for such a command. */
  get env(): Record<string, string> {
    return {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: this.home,
      HOTCELL_STATE_DIR: this.state,
      HOTCELL_SESSIONS_DIR: join(this.home, 'sessions'),
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
