import { builtinModules } from 'node:module';
import type { PackageSpec } from './api.ts';
import { isPackageName, isRange, quoted } from './package-spec.ts';

/** What the text of an import stands for. */
export type Specifier =
  | {
      readonly kind: 'package';
      readonly spec: PackageSpec;
      /** What a resolver that knows only `node_modules` understands. */
      readonly plain: string;
    }
  /** Of the runtime, or of the code itself. */
  | { readonly kind: 'own' }
  | { readonly kind: 'refused'; readonly reason: string };

/** Bun has these inside. */
const SHIPPED: ReadonlySet<string> = new Set([...builtinModules, 'bun', 'undici', 'ws']);
const OWN = /^(?:\.{0,2}\/|\.{1,2}$|#|(?:node|bun|file|data):)/;
const OWN_KIND: Specifier = { kind: 'own' };

export function readSpecifier(text: string): Specifier {
  if (OWN.test(text) || SHIPPED.has(text)) return OWN_KIND;
  const whole = text.startsWith('npm:') ? text.slice('npm:'.length) : text;
  const [, scheme] = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(whole) ?? [];
  if (scheme !== undefined) return refused(`${quoted(text)} cannot be imported: ${whyNot(scheme)}`);
  const [, name = '', range, path = ''] = /^((?:@[^/@]*\/)?[^/@]*)(?:@([^/]*))?(\/.*)?$/s.exec(whole) ?? [];
  if (!isPackageName(name)) return refused(`${quoted(text)} is no name of a package`);
  if (range !== undefined && !isRange(range)) {
    return refused(`${quoted(text)}: ${quoted(range)} is no version; write one such as ${name}@1.2.3`);
  }
  if (path.split('/').some((part) => part === '.' || part === '..')) {
    return refused(`${quoted(text)} leads out of its package`);
  }
  return { kind: 'package', spec: { name, range }, plain: `${name}${path}` };
}

function whyNot(scheme: string): string {
  if (scheme === 'jsr') return 'only packages of npm can be installed, not those of jsr';
  if (scheme === 'http' || scheme === 'https')
    return 'code is not loaded from addresses; name a package of npm';
  return `nobody here knows what ${scheme}: stands for; name a package of npm`;
}

function refused(reason: string): Specifier {
  return { kind: 'refused', reason };
}
