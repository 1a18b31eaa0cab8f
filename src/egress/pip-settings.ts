import type { Registries } from './presets.ts';
import { toPattern, withoutSecrets } from './registry-url.ts';
import type { AskProgram } from './ask-program.ts';

/** pip's own words for where it gets packages from when nobody tells it: the index, and the host of the files. */
const BUILT_IN =
  'from pip._internal.models.index import PyPI; print(PyPI.simple_url, PyPI.file_storage_domain)';

/** The indexes that pip uses here. */
export async function readPip(run: AskProgram): Promise<Registries> {
  const [listed, builtIn] = await Promise.all([
    run('python3', ['-m', 'pip', '--disable-pip-version-check', 'config', 'list']),
    run('python3', ['-c', BUILT_IN]),
  ]);
  return planPip(parsePipSettings(listed), builtIn.trim().split(/\s+/));
}

export interface PipSettings {
  readonly index: string | undefined;
  /** Beside the index. */
  readonly extra: readonly string[];
  readonly links: readonly string[];
}

/** Of lines such as `global.index-url='https://…'`; `:env:` stands for variables, which pip prefers. */
export function parsePipSettings(listed: string): PipSettings {
  const found = listed.split('\n').flatMap((line) => {
    const parts = /^(:env:|global|install|download)\.(index-url|extra-index-url|find-links)=(['"])(.*)\3$/;
    const [, where, name, , value = ''] = parts.exec(line) ?? [];
    return name === undefined ? [] : [{ where, name, urls: splitUrls(value) }];
  });
  const fromVariables = found.filter(({ where }) => where === ':env:');
  const urlsOf = (wanted: string): string[] => {
    const own = [fromVariables, found].find((list) => list.some(({ name }) => name === wanted)) ?? [];
    return own.filter(({ name }) => name === wanted).flatMap(({ urls }) => urls);
  };
  return { index: urlsOf('index-url')[0], extra: urlsOf('extra-index-url'), links: urlsOf('find-links') };
}

/** Several stand on several lines of the file, which pip prints as `\n`. */
function splitUrls(value: string): string[] {
  return value.split(/\s+|\\n/).filter((url) => /^https?:\/\//i.test(url));
}

/** Pages of pip's own index link to files on another host; a mirror has its own. */
export function planPip({ index, extra, links }: PipSettings, builtIn: readonly string[]): Registries {
  const [ownIndex = '', ownFiles = ''] = builtIn;
  const used = [index ?? ownIndex, ...extra, ...links];
  const isOwnUsed = used.some((url) => toPattern(url) === toPattern(ownIndex));
  const told = {
    PIP_INDEX_URL: index === undefined ? undefined : withoutSecrets(index),
    PIP_EXTRA_INDEX_URL: extra.flatMap((url) => withoutSecrets(url) ?? []).join(' ') || undefined,
  };
  const variables = Object.entries(told).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { urls: isOwnUsed ? [...used, ownFiles] : used, variables: Object.fromEntries(variables) };
}
