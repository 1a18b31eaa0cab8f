import { messageOf } from '../core/errors.ts';
import type { Allowed } from './cell-network.ts';
import { EGRESS_PRESETS } from '../core/host-pattern.ts';
import { readNpm } from './npm-settings.ts';
import { readPip } from './pip-settings.ts';
import { toPattern } from './registry-url.ts';
import { askProgram, type AskProgram } from './ask-program.ts';

/** What a preset stands for on this machine. */
export interface Preset {
  /** Patterns, as in an allow-list. */
  readonly hosts: readonly string[];
  /** Tells the program in a cell of what is configured outside, such as a mirror. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Why there are no hosts. */
  readonly problem?: string;
}

export type PresetTable = Readonly<Record<(typeof EGRESS_PRESETS)[number], Preset>>;

/** Where a package manager gets packages from. */
export interface Registries {
  readonly urls: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

export interface PresetOptions {
  /** What npm and pip are asked with: their settings come from there, from files in HOME and from their own folders. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly run?: AskProgram;
}

const GITHUB: Preset = { hosts: ['github.com', '*.github.com', '*.githubusercontent.com'] };

/**
 * Asks npm and pip where they get packages from, so that mirrors work. Takes about a second, and never fails: a preset that
 * nobody can tell is empty and says why.
 */
export async function readPresets({ env, run = askProgram(env) }: PresetOptions): Promise<PresetTable> {
  const [npm, pypi] = await Promise.all([
    readPreset('npm', () => readNpm(run)),
    readPreset('pip', () => readPip(run)),
  ]);
  return { npm, pypi, github: GITHUB };
}

async function readPreset(program: string, read: () => Promise<Registries>): Promise<Preset> {
  try {
    const { urls, variables } = await read();
    const hosts = [...new Set(urls.flatMap((url) => toPattern(url) ?? []))];
    if (hosts.length > 0) return { hosts, variables };
    return { hosts, problem: `${program} is configured without a registry that has a name` };
  } catch (error) {
    return { hosts: [], problem: `${program} cannot be asked for its registry: ${messageOf(error)}` };
  }
}

/** The variables of those presets that are in an allow-list. */
export function presetVariables(
  presets: PresetTable,
  allow: readonly Allowed[],
): Readonly<Record<string, string>> {
  const asked = EGRESS_PRESETS.filter((name) => allow.includes(name));
  return Object.assign({}, ...asked.map((name) => presets[name].variables ?? {}));
}
