import { createHash } from 'node:crypto';
import { Script } from 'node:vm';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { ERRORS } from '../core/errors.ts';
import { ErrorReply, ExecuteReply, ExecuteRequest, HealthReply, LanguagesReply } from '../wire/execute.ts';
import { PYTHON, ScriptedServer } from './scripted-server.ts';

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
  parameters: z.array(z.object({ name: z.string(), in: z.literal('path'), schema: z.unknown() })).optional(),
  requestBody: Body.optional(),
  responses: z.record(z.string().regex(/^[1-5]\d\d$/), Body.required({ description: true })),
});
const ObjectSchema = z.object({
  type: z.literal('object'),
  properties: z.record(z.string(), z.unknown()),
  required: z.array(z.string()),
});
const OpenApi = z.object({
  openapi: z.literal('3.1.0'),
  info: z.object({ title: z.string(), version: z.string() }),
  paths: z.record(z.string().startsWith('/'), z.partialRecord(z.enum(['get', 'post']), Operation)),
  components: z.object({
    schemas: z.record(z.string(), ObjectSchema),
    securitySchemes: z.record(z.string(), z.unknown()).optional(),
  }),
});

const WIRE = { ExecuteRequest, ExecuteReply, ErrorReply, HealthReply, LanguagesReply };

async function readOpenApi(server: ScriptedServer) {
  return OpenApi.parse((await server.ask('/openapi.json')).json());
}

test('[WB-04] the OpenAPI document lists exactly the routes that the server has', async () => {
  await using server = await ScriptedServer.start();
  const { paths, info } = await readOpenApi(server);
  expect(info.version).toBe('9.8.7');
  for (const [path, methods] of Object.entries(paths)) {
    for (const method of Object.keys(methods)) {
      const options = { method: method.toUpperCase(), headers: { 'content-type': 'application/json' } };
      expect((await server.ask(path.replace('{language}', 'python'), options)).status).not.toBeOneOf([
        404, 405,
      ]);
    }
  }
  const routes = server.app.printRoutes({ commonPrefix: false, includeHooks: false });
  const served = [...routes.matchAll(/([/\w.:]+) \(([A-Z, ]+)\)/g)].filter(
    ([, , methods]) => methods !== 'OPTIONS',
  );
  expect(served).toHaveLength(Object.keys(paths).length);
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
  expect(Object.keys(schemas).toSorted()).toEqual(Object.keys(WIRE).toSorted());
  for (const [name, schema] of Object.entries(WIRE)) {
    expect(Object.keys(schemas[name]?.properties ?? {})).toEqual(Object.keys(schema.shape));
    const required = Object.entries(schema.shape).filter(([, field]) => !field.safeParse(undefined).success);
    expect(schemas[name]?.required).toEqual(required.map(([field]) => field));
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
        const wire = Object.entries(WIRE).find(
          ([name]) => schema.$ref === `#/components/schemas/${name}`,
        )?.[1];
        const values = examples === undefined ? [example] : Object.values(examples).map(({ value }) => value);
        for (const value of values) {
          expect(wire?.safeParse(value)).toMatchObject({ success: true });
          checked += 1;
        }
      }
    }
  }
  expect(checked).toBeGreaterThan(20);
});

test('[WB-04] the execute route documents each error status that a client can meet', async () => {
  await using server = await ScriptedServer.start({ apiKey: 'key-12345' });
  const { paths, components } = await readOpenApi(server);
  const execute = paths['/execute/{language}']?.post;
  const neverMet = new Set([
    'METHOD_NOT_ALLOWED',
    'NOT_FOUND',
    'FILE_REFUSED',
    'CANCELLED',
    'CONFIG_INVALID',
  ]);
  const met = Object.entries(ERRORS).filter(([code]) => !neverMet.has(code));
  for (const [code, { status }] of met) {
    expect(Object.keys(execute?.responses[status]?.content?.['application/json']?.examples ?? {})).toContain(
      code,
    );
  }
  expect(Object.keys(components.securitySchemes ?? {})).toEqual(['key']);
  expect(execute?.security).toEqual([{ key: [] }]);
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
