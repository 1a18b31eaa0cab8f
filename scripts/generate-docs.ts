/** Writes the tables of docs/ from the code; with --check it only says which ones would change, and exits with 1. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import * as z from 'zod';
import { SETTINGS } from '../src/app/config/config-keys.ts';
import { Config } from '../src/app/config/config.ts';
import { ERRORS } from '../src/core/errors.ts';
import { BUILT_IN_LANGUAGES } from '../src/core/language.ts';
import { makeOpenApi } from '../src/http/openapi.ts';
import { driversPage } from './docs/drivers-page.ts';
import { fleetFilesPage } from './docs/fleet-files-page.ts';
import { code, page, plain, table } from './docs/markdown.ts';
import { mcpToolsPage } from './docs/mcp-tools-page.ts';
import { JsonSchema, allowedText, rowsOf, settingText } from './docs/schema-rows.ts';

const DOCS = new URL('../docs/', import.meta.url);

// Errors

function errorsPage(): string {
  const errors = Object.entries(ERRORS).map(([name, { status, retry, hint }]) => [
    code(name),
    String(status),
    retry ? 'yes' : 'no',
    plain(hint),
  ]);
  return page(
    'Errors',
    ['src/core/errors.ts'],
    'An error of the program that runs is a result with status 200, never one of these. ' +
      'The body of an error is `detail`, `code`, `hint`, and `field` if one field is at fault; ' +
      'failures of ours on `/execute` also carry empty `stdout` and `stderr` and `exit_code` -1. ' +
      'The exit codes of the command stand in `hotcell --help`.',
    table(['Code', 'Status', 'Worth a retry', 'What to do'], errors),
  );
}

// Configuration

/** Defaults that depend on the machine, in words, so that the page does not. */
const DEFAULT_IN_WORDS: ReadonlyMap<string, string> = new Map([
  ['pool.running', 'half of the memory in cells of 256m; at least 4, at most 64'],
  ['pool.booting', 'the number of CPU cores'],
  ['stateDir', 'a folder `hotcell` below `/run`, `/run/user/UID` or `/dev/shm`'],
]);

function schemaAt(path: string): JsonSchema | undefined {
  return path
    .split('.')
    .reduce<JsonSchema | undefined>((schema, part) => schema?.properties?.[part], CONFIG_SCHEMA);
}

const CONFIG_SCHEMA = JsonSchema.parse(z.toJSONSchema(Config, { io: 'input' }));

function configurationPage(): string {
  const rows = [...SETTINGS.values()].map(({ path, environmentName, kind, description }) => {
    const schema = schemaAt(path);
    return [
      code(path),
      code(environmentName),
      DEFAULT_IN_WORDS.get(path) ?? code(settingText(kind, schema?.default)),
      [plain(description), allowedText(kind, schema)].filter((text) => text !== '').join('; '),
    ];
  });
  return page(
    'Configuration',
    ['src/app/config/config.ts', 'src/core/limits.ts'],
    'Later sources win: defaults, then the first settings file that exists (`--config FILE`, `./hotcell.yaml`, ' +
      '`/etc/hotcell/hotcell.yaml`), then environment variables, then flags. `--set KEY=VALUE` takes every key but ' +
      '`apiKey`. Unknown keys and unknown `HOTCELL_` variables are refused. `hotcell config` shows every value and where it comes from.',
    'Sizes may end in `k`, `m` or `g`, times in `ms`, `s` or `min`. Lists are separated by commas in variables and ' +
      'flags. `languages` is JSON there; its form is in [languages.md](languages.md).',
    table(['Key', 'Environment variable', 'Default', 'Meaning'], rows),
  );
}

// Languages

function languagesPage(): string {
  const rows = Object.entries(BUILT_IN_LANGUAGES).map(([name, language]) => [
    code(name),
    code(`.${language.extension}`),
    code(language.command.join(' ')),
    language.package === undefined ? 'comes as an npm package' : `Debian package ${code(language.package)}`,
    code(language.image ?? ''),
    code(language.recipe ?? ''),
  ]);
  const fields = rowsOf(CONFIG_SCHEMA.properties?.['languages']?.['additionalProperties'], '');
  return page(
    'Languages',
    ['src/core/language.ts'],
    table(['Name', 'File', 'Command', 'Interpreter', 'Image', 'Recipe'], rows),
    '## Adding one',
    'Each entry of the setting `languages` is a language, and its route `/execute/<name>` appears by itself. ' +
      '`false` removes a built-in one. An entry has these fields:',
    table(['Field', 'Type', 'Meaning'], fields),
    'Cells see the programs below the `/usr` of the host, or of `rootfs`. Without `hot` the cell waits in a shell and ' +
      'starts the interpreter when the job comes; [guest/README.md](../guest/README.md) tells how a `hot` command has to behave. ' +
      'Docker cells have the programs of their `image`; what `hotcell build` made from the `recipe` is preferred to it.',
  );
}

// HTTP

const Operation = z.looseObject({
  summary: z.string(),
  security: z.array(z.unknown()).optional(),
  responses: z.record(z.string(), z.object({ description: z.string() }).loose()),
});
const Api = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.looseObject({ schemas: z.record(z.string(), JsonSchema) }),
});

function httpPage(): string {
  const api = Api.parse(makeOpenApi({ version: '', needsKey: true, languages: [] }));
  const routes = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary, security, responses }]) => [
      code(`${method.toUpperCase()} ${path}`),
      plain(summary),
      security === undefined ? 'no' : 'yes',
      Object.keys(responses).join(', '),
    ]),
  );
  const fields = (name: string): string =>
    table(['Field', 'Type', 'Meaning'], rowsOf(api.components.schemas[name], ''));
  return page(
    'HTTP API',
    ['src/wire', 'src/http/openapi.ts'],
    'A running server has the same as `/openapi.json`, and as a page to read and to try at `/docs`. ' +
      'The rules for callers (`Host`, `Origin`, key) are in [SECURITY.md](../SECURITY.md#the-http-door), ' +
      'the error codes in [errors.md](errors.md).',
    table(['Route', 'What it does', 'Asks for the key, if one is set', 'Statuses'], routes),
    '## Body of `POST /execute/<language>`',
    'JSON, with the header `content-type: application/json`. Unknown fields are refused.',
    fields('ExecuteRequest'),
    '## Its reply',
    fields('ExecuteReply'),
    '## Body of an error',
    fields('ErrorReply'),
    '## Reply of `GET /health`',
    'The status is `degraded` when a language has no cell at all, which is also so after a long idle time.',
    fields('HealthReply'),
    '## Reply of `GET /languages`',
    fields('LanguagesReply'),
    '## Sessions',
    'How they behave is in [sessions.md](sessions.md).',
    ...SESSION_SCHEMAS.flatMap(([title, name]) => [`### ${title}`, fields(name)]),
  );
}

const SESSION_SCHEMAS: readonly (readonly [title: string, schema: string])[] = [
  ['Body of `POST /v1/sessions`', 'CreateSessionRequest'],
  ['A session', 'SessionReply'],
  ['Body of `POST …/exec`', 'SessionExecRequest'],
  ['Its reply', 'SessionExecReply'],
  ['Reply of `GET …/output`', 'OutputReply'],
  ['Body of `POST …/stdin`', 'StdinRequest'],
  ['Body of `POST …/upload`', 'UploadRequest'],
  ['Body of `POST …/sync`', 'SyncRequest'],
  ['Its reply', 'SyncReply'],
  ['Reply of `GET …/changes`', 'ChangesReply'],
  ['Body of `POST …/apply_patch`', 'ApplyPatchRequest'],
  ['Reply of `GET …/egress`', 'EgressReply'],
  ['Reply of `GET /metrics.json`', 'MetricsReply'],
];

// Writing

const pages: Readonly<Record<string, string>> = {
  'configuration.md': configurationPage(),
  'drivers.md': driversPage(),
  'errors.md': errorsPage(),
  'fleet-files.md': fleetFilesPage(),
  'http-api.md': httpPage(),
  'languages.md': languagesPage(),
  'mcp-tools.md': await mcpToolsPage(),
};

const check = process.argv.includes('--check');
for (const [name, text] of Object.entries(pages)) {
  const file = fileURLToPath(new URL(name, DOCS));
  const options = await resolveConfig(file);
  const wanted = await format(text, { ...options, parser: 'markdown' });
  const isFresh = existsSync(file) && readFileSync(file, 'utf8') === wanted;
  if (isFresh) continue;
  if (check) {
    console.error(`docs/${name} is not what the code says; run: npm run docs`);
    process.exitCode = 1;
  } else {
    writeFileSync(file, wanted);
    console.error(`wrote docs/${name}`);
  }
}
