import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { HotcellError } from '../core/errors.ts';

/** Which methods a path knows, so that a wrong one can be told from a wrong path. */
export class AllowedMethods {
  readonly #routes: { readonly pattern: RegExp; readonly methods: Set<string> }[] = [];

  /** Precondition: called before the routes are added. */
  watch(app: FastifyInstance): void {
    app.addHook('onRoute', ({ url, method }) => {
      // The route for preflights matches every path and says nothing about any.
      if (url !== '*') this.#add(url, [method].flat());
    });
  }

  /** Throws for a request that no route took. */
  refuse(request: FastifyRequest, reply: FastifyReply): never {
    const [path = ''] = request.url.split('?', 1);
    const route = this.#routes.find(({ pattern }) => pattern.test(path));
    if (route === undefined) throw new HotcellError('NOT_FOUND', 'there is no such path');
    reply.header('allow', [...route.methods].join(', '));
    throw new HotcellError('METHOD_NOT_ALLOWED', `${request.method} is not a method of this path`);
  }

  #add(url: string, methods: readonly string[]): void {
    const pattern = new RegExp(`^${url.replaceAll('.', String.raw`\.`).replaceAll(/:\w+/g, '[^/]+')}$`);
    const known = this.#routes.find((route) => route.pattern.source === pattern.source);
    if (known === undefined) this.#routes.push({ pattern, methods: new Set(methods) });
    else for (const method of methods) known.methods.add(method);
  }
}
