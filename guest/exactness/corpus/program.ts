export interface Program {
  readonly code: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly stdin?: string;
}

export type Corpus = Readonly<Record<string, string | Program>>;

export function toProgram(entry: string | Program): Program {
  return typeof entry === 'string' ? { code: entry } : entry;
}

export const withInput = (code: string): Program => ({
  code,
  stdin: 'first line\nsecond ä\n\n3\nlast without newline',
});
export const withArgs = (code: string): Program => ({
  code,
  args: ['', 'a b', '--flag', 'ünï', '-x', 'q\'u"o$te\\n', 'line\nbreak'],
});
export const withEnv = (code: string): Program => ({
  code,
  env: { FOO: 'a b\nc', EMPTY: '', ÜNI: 'ö=ü', TZ: 'Asia/Tokyo' },
});
