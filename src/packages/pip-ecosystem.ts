import { readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { HotcellError } from '../core/errors.ts';
import type { InstalledPackage } from '../core/installed-package.ts';
import type { Ecosystem, InstallPlan, Inspected } from './ecosystem.ts';
import type { InstallRequest } from './install-request.ts';
import { quoted } from './package-spec.ts';
import { explainPip } from './pip-failure.ts';
import { checkPythonSpec, isPythonName, normalName, toRequirement } from './pip-spec.ts';
import { parseJson } from '../lib/parse-json.ts';

const REQUIREMENTS = 'requirements.txt';
const REPORT = 'report.json';
const LOCK_FILE = 'pip.lock';
const MODULES = 'modules';
const LONGEST_REPORT = 32 * 1024 * 1024;
const SHA256 = /^[0-9a-f]{64}$/;

/** Python runs these before the program, whatever it imports. */
const AT_START = /^(?:site|user)customize\b/;

const Report = z.object({
  install: z
    .array(
      z.object({
        metadata: z.object({
          name: z.string().refine(isPythonName),
          version: z.string().regex(/^[\w.!+-]{1,64}$/),
        }),
        is_direct: z.literal(false),
        requested: z.boolean(),
        download_info: z.object({
          url: z.url({ protocol: /^https?$/ }),
          archive_info: z.object({
            hash: z.string().optional(),
            hashes: z.object({ sha256: z.string().optional() }).optional(),
          }),
        }),
      }),
    )
    .min(1)
    .max(1000),
});

/** Packages of Python, installed by pip: only such that come built, since building one runs its code. */
export const PYPI: Ecosystem = {
  name: 'pypi',
  layout: { lock: LOCK_FILE, modules: MODULES },
  checkSpec: checkPythonSpec,
  plan: toPlan,
  explain: explainPip,
  inspect,
};

function toPlan({ specs, minimumReleaseAgeSeconds }: InstallRequest): InstallPlan {
  if (minimumReleaseAgeSeconds > 0) {
    throw new HotcellError('POLICY_UNENFORCEABLE', 'pip does not tell how old versions are', {
      hint: 'The operator has to choose: a least age of versions, or packages of Python.',
    });
  }
  return {
    files: [{ name: REQUIREMENTS, content: specs.map((spec) => `${toRequirement(spec)}\n`).join('') }],
    argv: [
      ...(['python3', '-I', '-m', 'pip', 'install'] as const),
      // SECURITY: nothing of a package runs here.
      '--only-binary=:all:',
      '--no-input',
      '--no-compile',
      '--no-cache-dir',
      '--disable-pip-version-check',
      '--ignore-installed',
      '--no-warn-script-location',
      '--retries=1',
      '--quiet',
      `--target=${MODULES}`,
      `--report=${REPORT}`,
      `--requirement=${REQUIREMENTS}`,
    ],
    env: {},
    results: [REPORT, MODULES],
  };
}

/** Writes the lock file: what was asked for, and what it led to, with checksums. */
async function inspect(folder: string, request: InstallRequest): Promise<Inspected> {
  const found = (await readReport(folder)).map(toFound);
  const asked = request.specs.map(({ name, range }) => [name, range ?? '']);
  const requested = found.filter(({ direct }) => direct).map(({ name }) => name);
  if (
    requested.toSorted().join() !==
    request.specs
      .map(({ name }) => name)
      .toSorted()
      .join()
  ) {
    throw new Error('something else was installed');
  }
  const places = await findPlaces(folder, found);
  const lines = found.map(({ name, version, sum, from }) => [name, version, sum, from].join(' '));
  const lock = `${JSON.stringify({ asked, packages: lines.toSorted() }, undefined, 2)}\n`;
  await writeFile(join(folder, LOCK_FILE), lock, { flag: 'wx', mode: 0o644 });
  await rm(join(folder, REPORT));
  const packages = found.map(({ name, version, from, direct }) => ({ name, version, from, direct }));
  return { lock, packages, places };
}

interface Found extends InstalledPackage {
  readonly sum: string;
}

async function readReport(folder: string): Promise<z.infer<typeof Report>['install']> {
  const names = await readdir(folder, { withFileTypes: true });
  const isRight = names.every(
    (one) => (one.name === REPORT && one.isFile()) || (one.name === MODULES && one.isDirectory()),
  );
  if (!isRight || names.length !== 2) throw new Error('something else was installed');
  if ((await stat(join(folder, REPORT))).size > LONGEST_REPORT)
    throw new Error('the report of pip makes no sense');
  const report = Report.safeParse(parseJson(await readFile(join(folder, REPORT), 'utf8')));
  if (!report.success) throw new Error('the report of pip makes no sense, or something comes from elsewhere');
  return report.data.install;
}

function toFound({
  metadata,
  requested,
  download_info: info,
}: z.infer<typeof Report>['install'][number]): Found {
  const { hash, hashes } = info.archive_info;
  const sum = hashes?.sha256 ?? hash?.replace(/^sha256=/, '') ?? '';
  if (!SHA256.test(sum)) throw new Error(`${metadata.name} has no checksum`);
  const { name, version } = metadata;
  return { name: normalName(name), version, from: new URL(info.url).host, direct: requested, sum };
}

/** The folder in which each package tells of itself; nothing else may tell of itself there. */
async function findPlaces(folder: string, found: readonly Found[]): Promise<string[]> {
  const left = new Set(found.map(({ name, version }) => `${name} ${version}`));
  const places: string[] = [];
  for (const { name: entry } of await readdir(join(folder, MODULES), { withFileTypes: true })) {
    if (AT_START.test(entry))
      throw new Error(`it brings ${quoted(entry)}, which would run before the program`);
    const [, name, version] = /^(.+)-([^-]+)\.dist-info$/.exec(entry) ?? [];
    if (name === undefined || version === undefined) continue;
    if (!left.delete(`${normalName(name)} ${version}`)) throw new Error(`${quoted(entry)} is in no report`);
    places.push(`${MODULES}/${entry}`);
  }
  const [missing] = left;
  if (missing !== undefined) throw new Error(`${missing} was not installed`);
  return places;
}
