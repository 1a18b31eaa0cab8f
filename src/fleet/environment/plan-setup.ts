import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as z from 'zod';
import { PIP_INSTALL } from '../../cells/pip-install.ts';
import type { FleetConfig } from '../fleet-config.ts';
import { readPlainFile } from './plain-file.ts';
import { parseJson } from '../../lib/parse-json.ts';

/** What a set-up depends on, at the root of a worktree. */
const NPM_MANIFESTS: readonly string[] = [
  'package.json',
  'package-lock.json',
  'npm-shrinkwrap.json',
  '.npmrc',
];
const PIP_MANIFESTS: readonly string[] = ['requirements.txt'];
/** Of other tools, whose products would be others. */
const FOREIGN_LOCKS: readonly string[] = ['yarn.lock', 'pnpm-lock.yaml', 'bun.lock', 'bun.lockb'];
const MANIFESTS: readonly string[] = [...NPM_MANIFESTS, ...PIP_MANIFESTS, ...FOREIGN_LOCKS];
const MOST_MANIFEST_BYTES = 64 * 1024 * 1024;

/** Without a lock file npm would make one, and the first commit would have it. */
const NPM_INSTALL = 'npm install --no-package-lock --no-audit --no-fund';
const NPM_CI = 'npm ci --no-audit --no-fund';

export type SetupWish = Pick<FleetConfig['worktree'], 'setup' | 'setup_command'>;

export interface SetupFacts {
  /** What there is of `MANIFESTS`, by name. */
  readonly manifests: Readonly<Record<string, Uint8Array>>;
  /** For what is installed: system, machine, and versions of what runs it. */
  readonly platform: string;
  /** The worktree as its programs see it: environments of Python have it in their scripts. */
  readonly place: string;
}

export interface SetupPlan {
  /** Names what comes out of it. */
  readonly key: string;
  /** For `bash -c` in the worktree, in the cell. */
  readonly command: string;
  /** Folders that it makes, in the worktree. */
  readonly products: readonly string[];
  /** Also after its products were restored: nobody knows what else it does. */
  readonly runsAlways: boolean;
  /** The preset of `network.allow` that it fetches from, where that is known. */
  readonly registry?: 'npm' | 'pypi';
}

export interface PlannedSetup {
  readonly plans: readonly SetupPlan[];
  /** For people: what is not set up, and why. */
  readonly notes: readonly string[];
}

/** What is to be done for the dependencies of a worktree. */
export function planSetup(wish: SetupWish, facts: SetupFacts): PlannedSetup {
  const { manifests } = facts;
  if (wish.setup_command !== undefined && wish.setup_command.trim() !== '') {
    const products = [
      ...('package.json' in manifests ? ['node_modules'] : []),
      ...('requirements.txt' in manifests ? ['.venv'] : []),
    ];
    const plan = toPlan(facts, { command: wish.setup_command, names: MANIFESTS, products, runsAlways: true });
    return { plans: [plan], notes: [] };
  }
  if (wish.setup === 'none') return { plans: [], notes: [] };
  const npm = planNpm(facts);
  const pip =
    'requirements.txt' in manifests
      ? [
          toPlan(facts, {
            command: PIP_INSTALL,
            names: PIP_MANIFESTS,
            products: ['.venv'],
            runsAlways: false,
            registry: 'pypi',
          }),
        ]
      : [];
  return { plans: [...npm.plans, ...pip], notes: npm.notes };
}

const Package = z.looseObject({
  dependencies: z.record(z.string(), z.unknown()).optional(),
  devDependencies: z.record(z.string(), z.unknown()).optional(),
  optionalDependencies: z.record(z.string(), z.unknown()).optional(),
  peerDependencies: z.record(z.string(), z.unknown()).optional(),
  workspaces: z.unknown().optional(),
});

function planNpm(facts: SetupFacts): PlannedSetup {
  const { manifests } = facts;
  const text = manifests['package.json'];
  if (text === undefined) return { plans: [], notes: [] };
  const parsed = Package.safeParse(parseJson(Buffer.from(text).toString()));
  if (!parsed.success) return { plans: [], notes: ['package.json is not one: nothing is installed for it'] };
  const foreign = FOREIGN_LOCKS.find((name) => name in manifests);
  const hasLock = 'package-lock.json' in manifests || 'npm-shrinkwrap.json' in manifests;
  if (foreign !== undefined && !hasLock) {
    const note = `${foreign} is not npm's: set worktree.setup_command to install dependencies`;
    return { plans: [], notes: [note] };
  }
  const { dependencies, devDependencies, optionalDependencies, peerDependencies, workspaces } = parsed.data;
  const all = { ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies };
  if (Object.keys(all).length === 0 && workspaces === undefined) return { plans: [], notes: [] };
  // Workspaces have folders of their own for what they do not share, so the one at the root is not everything.
  const products = workspaces === undefined ? ['node_modules'] : [];
  const command = hasLock ? NPM_CI : NPM_INSTALL;
  return {
    plans: [toPlan(facts, { command, names: NPM_MANIFESTS, products, runsAlways: false, registry: 'npm' })],
    notes: [],
  };
}

interface Work extends Omit<SetupPlan, 'key'> {
  /** The manifests that count. */
  readonly names: readonly string[];
}

function toPlan({ manifests, platform, place }: SetupFacts, { names, ...work }: Work): SetupPlan {
  const hash = createHash('sha256');
  const add = (field: string | Uint8Array): void => {
    hash.update(`${Buffer.byteLength(field)}\n`).update(field);
  };
  const isPlaced = work.products.includes('.venv');
  for (const field of ['1', platform, work.command, isPlaced ? place : '', ...work.products]) add(field);
  for (const name of names) {
    const content = manifests[name];
    add(name);
    add(content === undefined ? 'missing' : createHash('sha256').update(content).digest());
  }
  return { key: hash.digest('hex'), ...work };
}

/** SECURITY: the worktree is one that a cell may have written to. */
export async function readManifests(worktree: string): Promise<Record<string, Uint8Array>> {
  const read = MANIFESTS.map(async (name): Promise<[string, Uint8Array][]> => {
    const file = await readPlainFile(join(worktree, name), MOST_MANIFEST_BYTES);
    return file.kind === 'file' ? [[name, file.bytes]] : [];
  });
  return Object.fromEntries((await Promise.all(read)).flat());
}
