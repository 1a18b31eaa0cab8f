import { createHash } from 'node:crypto';
import { Script } from 'node:vm';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { ERRORS } from '../core/errors.ts';
import { SCHEMAS as WIRE } from './openapi-parts.ts';
import { PYTHON, ScriptedServer } from './scripted-server.double.ts';

const Media = z.object({
  schema: z.record(z.string(), z.unknown()),
  example: z.unknown().optional(),
  examples: z.record(z.string(), z.object({ value: z.unknown() })).optional(),
});
const Body = z.object({
  description: z.string().optional(),
  content: z.record(z.string(), Media).optional(),
});
const Operation = z.object({
  operationId: z.string(),
  summary: z.string(),
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
  parameters: z
    .array(z.object({ name: z.string(), in: z.enum(['path', 'query', 'header']), schema: z.unknown() }))
    .optional(),
  requestBody: Body.optional(),
  responses: z.record(z.string().regex(/^[1-5]\d\d$/), Body.required({ description: true })),
});
const ObjectSchema = z.object({
  type: z.literal('object'),
  properties: z.record(z.string(), z.unknown()),
  required: z.array(z.string()).default([]),
});
const Schema = z.union([ObjectSchema, z.object({ anyOf: z.array(ObjectSchema) })]);
const OpenApi = z.object({
  openapi: z.literal('3.1.0'),
  info: z.object({ title: z.string(), version: z.string() }),
  paths: z.record(
    z.string().startsWith('/'),
    z.partialRecord(z.enum(['get', 'post', 'put', 'delete']), Operation),
  ),
  components: z.object({
    schemas: z.record(z.string(), Schema),
    securitySchemes: z.record(z.string(), z.unknown()).optional(),
  }),
});

/** Of no route, of nobody who still listens, or of the start of the server. */
const NEVER_DOCUMENTED = ['METHOD_NOT_ALLOWED', 'NOT_FOUND', 'CANCELLED', 'CONFIG_INVALID', 'DATA_TOO_NEW'];
/** In replies of MCP tools, which are no errors of HTTP. */
const OF_TOOLS = [
  'WORKBENCH_UNKNOWN',
  'RUN_UNKNOWN',
  'PERMISSION_REFUSED',
  'PACKAGE_UNAVAILABLE',
  'SNIPPET_UNKNOWN',
  'SNIPPET_REFUSED',
];
/** Of the command `mahabharatha`, which serves nobody. */
const OF_THE_FLEET = [
  'FLEET_BUSY',
  'FLEET_GIT',
  'FLEET_STATE',
  'FLEET_UNKNOWN',
  'GRAPH_INVALID',
  'AGENT_FAILED',
  'AGENT_SIGNED_OUT',
  'WORKTREE_TOO_LARGE',
  'TASKS_FAILED',
  'MERGE_CONFLICT',
];
const OF_NO_ROUTE = [...NEVER_DOCUMENTED, ...OF_TOOLS, ...OF_THE_FLEET];

async function readOpenApi(server: ScriptedServer) {
  return OpenApi.parse((await server.ask('/openapi.json')).json());
}

test('[WB-04] the OpenAPI document lists exactly the routes that the server has', async () => {
  await using server = await ScriptedServer.start();
  const { paths, info } = await readOpenApi(server);
  expect(info.version).toBe('9.8.7');
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(documented.toSorted()).toEqual(servedRoutes(server).toSorted());
  expect(documented.length).toBeGreaterThan(30);
});

/** Every route of the server but those for HEAD and OPTIONS, from the tree that Fastify prints. */
function servedRoutes(server: ScriptedServer): string[] {
  const tree = server.app.printRoutes({ commonPrefix: false, includeHooks: false });
  const prefixes: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] = /^([│ ]*)[├└]── (\S+) \(([A-Z, ]+)\)$/.exec(line) ?? [];
    const depth = indent.length / 4;
    const path = (depth === 0 ? '' : (prefixes[depth - 1] ?? '')) + part;
    prefixes.splice(depth, Infinity, path);
    const documented = methods.split(', ').filter((method) => !['', 'HEAD', 'OPTIONS'].includes(method));
    return documented.map((method) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
  });
}

test('[WB-04] every name in a path is a parameter, and every operation has an id of its own', async () => {
  await using server = await ScriptedServer.start();
  const { paths } = await readOpenApi(server);
  const ids: string[] = [];
  for (const [path, methods] of Object.entries(paths)) {
    for (const { operationId, parameters = [] } of Object.values(methods)) {
      const inPath = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
      expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      ids.push(operationId);
    }
  }
  expect(new Set(ids).size).toBe(ids.length);
});

test('[WB-04] the document names the languages of the moment', async () => {
  await using server = await ScriptedServer.start();
  server.languages = [PYTHON, { ...PYTHON, name: 'lua' }];
  const { paths } = await readOpenApi(server);
  expect(paths['/execute/{language}']?.post?.parameters?.[0]?.schema).toEqual({
    type: 'string',
    enum: ['python', 'lua'],
  });
});

test('[WB-04] the fields of every schema are those of the wire', async () => {
  await using server = await ScriptedServer.start();
  const { schemas } = (await readOpenApi(server)).components;
  expect(Object.keys(schemas).toSorted()).toEqual([...WIRE.keys()].toSorted());
  for (const [name, schema] of WIRE) {
    const wireSides = schema instanceof z.ZodUnion ? schema.options : [schema];
    const shown = schemas[name];
    const shownSides = shown !== undefined && 'anyOf' in shown ? shown.anyOf : [shown];
    for (const [index, side] of wireSides.entries()) {
      if (!(side instanceof z.ZodObject)) throw new TypeError(`${name} is no object`);
      const fields = Object.entries<z.ZodType>(side.shape);
      const required = fields.filter(([, field]) => !field.safeParse(undefined).success);
      expect(Object.keys(shownSides[index]?.properties ?? {})).toEqual(fields.map(([field]) => field));
      expect(shownSides[index]?.required).toEqual(required.map(([field]) => field));
    }
    expect(shownSides).toHaveLength(wireSides.length);
  }
});

test('[WB-04] every reference leads somewhere and every example fits its schema', async () => {
  await using server = await ScriptedServer.start({ apiKey: 'key-12345' });
  const { paths } = await readOpenApi(server);
  let checked = 0;
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    for (const body of [operation?.requestBody, ...Object.values(operation?.responses ?? {})]) {
      for (const { schema, example, examples } of Object.values(body?.content ?? {})) {
        if (typeof schema.$ref !== 'string') continue;
        const wire = WIRE.get(schema.$ref.replace('#/components/schemas/', ''));
        const values = examples === undefined ? [example] : Object.values(examples).map(({ value }) => value);
        for (const value of values) {
          expect(wire?.safeParse(value)).toMatchObject({ success: true });
          checked += 1;
        }
      }
    }
  }
  expect(checked).toBeGreaterThan(200);
});

test('[WB-04] the execute route documents each error status that a client can meet', async () => {
  await using server = await ScriptedServer.start({ apiKey: 'key-12345' });
  const { paths, components } = await readOpenApi(server);
  const execute = paths['/execute/{language}']?.post;
  const ofSessions = Object.keys(ERRORS).filter((code) =>
    /^(SESSION|EXEC|FILE|DISK|PATCH|QUOTA|RATE)S?_/.test(code),
  );
  const neverMet = new Set([...OF_NO_ROUTE, ...ofSessions, 'COMMAND_REFUSED']);
  const met = Object.entries(ERRORS).filter(([code]) => !neverMet.has(code));
  for (const [code, { status }] of met) {
    expect(Object.keys(execute?.responses[status]?.content?.['application/json']?.examples ?? {})).toContain(
      code,
    );
  }
  expect(Object.keys(components.securitySchemes ?? {})).toEqual(['key']);
  expect(execute?.security).toEqual([{ key: [] }]);
});

test('[WB-04] every error of the table is documented somewhere, but those that belong to no route', async () => {
  await using server = await ScriptedServer.start({ apiKey: 'key-12345' });
  const { paths } = await readOpenApi(server);
  const documented = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ responses }) =>
      Object.values(responses).flatMap(({ content }) =>
        Object.keys(content?.['application/json']?.examples ?? {}),
      ),
    ),
  );
  const expected = Object.keys(ERRORS).filter((code) => !OF_NO_ROUTE.includes(code));
  expect([...new Set(documented)].toSorted()).toEqual(expected.toSorted());
});

test('[WB-04] without a key the document speaks of none', async () => {
  await using server = await ScriptedServer.start();
  const { paths, components } = await readOpenApi(server);
  expect(components.securitySchemes).toBeUndefined();
  expect(paths['/execute/{language}']?.post?.responses).not.toHaveProperty('401');
});

test('[WB-04] the page at /docs is complete in itself', async () => {
  await using server = await ScriptedServer.start();
  const { status, headers, text } = await server.ask('/docs');
  expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  expect(text).not.toMatch(/https?:|\/\/[a-z]+\.|@import|url\(|<iframe|<object| on[a-z]+=|style="/i);
  const links = [...text.matchAll(/(?:src|href|action)="([^"]*)"/g)].map(([, target]) => target);
  expect(new Set(links)).toEqual(new Set(['/openapi.json', 'data:,']));
  const fetched = [...text.matchAll(/fetch\(([^,)]+)/g)].map(([, target]) => target);
  expect(new Set(fetched)).toEqual(new Set(["'/openapi.json'", 'path']));
});

test('[WB-04] the policy of /docs lets its own style and script run and nothing else', async () => {
  await using server = await ScriptedServer.start();
  const { headers, text } = await server.ask('/docs');
  const hashOf = (tag: string) => {
    const content = text.split(`<${tag}>`)[1]?.split(`</${tag}>`)[0] ?? '';
    return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
  };
  expect(String(headers['content-security-policy']).split('; ')).toEqual(
    expect.arrayContaining([
      "default-src 'none'",
      `script-src ${hashOf('script')}`,
      `style-src ${hashOf('style')}`,
      "frame-ancestors 'none'",
    ]),
  );
  expect(headers['content-security-policy']).not.toMatch(/unsafe|\*|https?:/);
});

test('[WB-04] the script of /docs compiles and every element that it looks for is there', async () => {
  await using server = await ScriptedServer.start();
  const { text } = await server.ask('/docs');
  const script = text.split('<script>')[1]?.split('</script>')[0] ?? '';
  expect(() => new Script(script)).not.toThrow();
  const wanted = [...script.matchAll(/find\('([\w-]+)'\)/g)].map(([, id]) => id);
  expect(wanted.length).toBeGreaterThan(5);
  for (const id of wanted) expect(text).toContain(`id="${id}"`);
});

test('[WB-04] the start page leads to /docs', async () => {
  await using server = await ScriptedServer.start();
  const { status, headers } = await server.ask('/');
  expect([status, headers.location]).toEqual([302, '/docs']);
});
