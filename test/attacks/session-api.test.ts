import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CREATE, JSON_TYPE, SessionTarget, expectHelpful, routes } from '../support/session-target.ts';

const MiB = 1024 * 1024;
const NOBODY = `session_${'0'.repeat(32)}`;

let target: SessionTarget;
beforeAll(async () => {
  target = await SessionTarget.open(['--set', 'sessions.bodyLimitBytes=262144']);
});
afterAll(() => target[Symbol.asyncDispose]());

describe('names in the path', () => {
  test.each([
    NOBODY,
    'x',
    '..',
    '%2e%2e',
    '..%2f..%2fetc',
    '.',
    '%00',
    'a%00b',
    '%0d%0aset-cookie:x',
    '*',
    "'%20OR%20'1'='1",
    '%F0%9F%92%A9',
    'a'.repeat(65),
    'a'.repeat(5000),
    '__proto__',
    'constructor',
  ])('[RS-14] %j is no session, on every route', async (id) => {
    for (const route of routes(id, target.exec)) {
      const { method, path } = route;
      const refusal = await target.sendRoute(route);
      expectHelpful(refusal, `${method} ${path.slice(0, 80)}`);
    }
  });

  test.each(['exec_0', '..', '%2e%2e', '%00', 'a'.repeat(65), '__proto__'])(
    '[RS-14] %j is no command',
    async (id) => {
      const own = routes(target.hand.id, id).filter(({ path }) => path.includes('/execs/'));
      expect(own).toHaveLength(4);
      for (const route of own) {
        const { method, path } = route;
        const refusal = await target.sendRoute(route);
        expectHelpful(refusal, `${method} ${path}`);
        expect(refusal.status).toBe(404);
      }
    },
  );

  test('[RS-14] what is no percent-encoding is refused', async () => {
    for (const path of [
      '/v1/sessions/%',
      '/v1/sessions/%zz/exec',
      `/v1/sessions/${target.hand.id}/fs?path=%ff%fe`,
    ])
      expectHelpful(await target.send('GET', path), path);
  });
});

test('[RS-18] a method that a route does not have is refused, with those that it has', async () => {
  await target.expectUnchanged(async () => {
    for (const { path } of [CREATE, ...routes(target.hand.id, target.exec)]) {
      for (const method of ['PATCH', 'TRACE', 'PROPFIND', 'LINK']) {
        const refusal = await target.send(method, path);
        expectHelpful(refusal, `${method} ${path}`);
      }
      const patched = await target.send('PATCH', path);
      expect({ path, status: patched.status }).toEqual({ path, status: 405 });
      expect(patched.headers.allow).toMatch(/[A-Z]/);
    }
  });
});

describe('bodies', () => {
  const BAD_JSON: readonly (string | Buffer)[] = [
    '',
    '{',
    '{"a":}',
    "{'a': 1}",
    '{"a": NaN}',
    '{} {}',
    'nonsense',
    '['.repeat(10_000),
    Buffer.from([0xff, 0xfe, 0x7b, 0x7d]),
    Buffer.from([0]),
  ];
  const WRONG: readonly unknown[] = [
    null,
    true,
    0,
    -1,
    'text',
    '',
    [],
    [{}],
    { evil: 1 },
    { __proto__: { a: 1 } },
  ];

  test('[RS-18] what is no JSON is refused on every route that takes some', async () => {
    await target.expectUnchanged(async () => {
      for (const { method, path, body } of [CREATE, ...routes(target.hand.id, target.exec)]) {
        if (body === undefined) continue;
        for (const bad of BAD_JSON) {
          const refusal = await target.send(method, path, { headers: JSON_TYPE, body: bad });
          expectHelpful(refusal, `${method} ${path} ${bad.toString().slice(0, 20)}`);
        }
      }
    });
  });

  test('[RS-18] a body of the wrong type, or with a key that nobody knows, is refused', async () => {
    await target.expectUnchanged(async () => {
      for (const { method, path, body } of [CREATE, ...routes(target.hand.id, target.exec)]) {
        if (body === undefined) continue;
        for (const wrong of [...WRONG, { ...body, evil: 1 }, { ...body, constructor: 1 }, [body]]) {
          // The routes without a needed field take an empty object.
          if (JSON.stringify(wrong) === '{}' && path.endsWith('/stdin')) continue;
          const refusal = await target.sendJson(method, path, wrong);
          expectHelpful(refusal, `${method} ${path} ${JSON.stringify(wrong)}`);
        }
        const { body: refused } = await target.sendJson(method, path, { ...body, evil: 1 });
        expect({ path, field: refused.field }).toEqual({ path, field: 'evil' });
      }
    });
  });

  test('[RS-18] so is one where none belongs', async () => {
    await target.expectUnchanged(async () => {
      for (const { method, path, body } of routes(target.hand.id, target.exec)) {
        if (body !== undefined || method === 'GET') continue;
        expectHelpful(await target.sendJson(method, path, { evil: 1 }), `${method} ${path}`);
      }
    });
  });

  test('[RS-18] so is one of another type than JSON, which a page could send', async () => {
    await target.expectUnchanged(async () => {
      for (const { method, path, body } of [CREATE, ...routes(target.hand.id, target.exec)]) {
        if (body === undefined) continue;
        for (const type of [
          'text/plain',
          'application/x-www-form-urlencoded',
          'multipart/form-data; boundary=x',
          '',
        ]) {
          const headers: Record<string, string> = type === '' ? {} : { 'content-type': type };
          const refusal = await target.send(method, path, { headers, body: JSON.stringify(body) });
          expect({ path, type, status: refusal.status }).toEqual({ path, type, status: 415 });
          expectHelpful(refusal, `${path} ${type}`);
        }
      }
    });
  });

  test('[RS-18] so is one that is too large', async () => {
    await target.expectUnchanged(async () => {
      for (const { method, path, body } of [CREATE, ...routes(target.hand.id, target.exec)]) {
        if (body === undefined) continue;
        const refusal = await target.sendJson(method, path, { ...body, evil: 'x'.repeat(MiB) });
        expect({ path, status: refusal.status, code: refusal.body.code }).toEqual({
          path,
          status: 413,
          code: 'BODY_TOO_LARGE',
        });
      }
    });
  });

  test('[RS-18] a query that nobody knows is refused on every route', async () => {
    await target.expectUnchanged(async () => {
      for (const { method, path, body } of [CREATE, ...routes(target.hand.id, target.exec)]) {
        for (const query of ['?evil=1', '?__proto__=1', '?path=a&path=b&evil']) {
          const refusal = await (body === undefined
            ? target.send(method, path + query)
            : target.sendJson(method, path + query, body));
          expectHelpful(refusal, `${method} ${path}${query}`);
        }
      }
    });
  });
});

test('[RS-08, RS-18] what has ended is told as ended, with the reason, on every route', async () => {
  const ended = await target.served.door().create();
  await ended.remove();
  for (const route of routes(ended.id, target.exec)) {
    const { path } = route;
    const refusal = await target.sendRoute(route);
    expect({ path, status: refusal.status, code: refusal.body.code }).toEqual({
      path,
      status: 410,
      code: 'SESSION_ENDED',
    });
    expect(refusal.body.detail).toContain('deleted');
  }
});
