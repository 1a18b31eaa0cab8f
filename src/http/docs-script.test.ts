import { createContext, runInContext } from 'node:vm';
import { expect, test } from 'vitest';
import { ScriptedServer } from './scripted-server.double.ts';

/** As much of a DOM element as the page needs: text is kept as text. */
class FakeElement {
  readonly children: (FakeElement | string)[] = [];
  readonly listeners: ((event: { preventDefault(): void }) => void)[] = [];
  hidden = false;
  value = '';

  append(...children: (FakeElement | string)[]): void {
    this.children.push(...children);
  }

  addEventListener(_type: 'submit', listener: (event: { preventDefault(): void }) => void): void {
    this.listeners.push(listener);
  }

  set textContent(text: string) {
    this.children.splice(0, Infinity, text);
  }

  get textContent(): string {
    return this.children.map((child) => (typeof child === 'string' ? child : child.textContent)).join('');
  }
}

async function openDocs(server: ScriptedServer): Promise<Map<string, FakeElement>> {
  const { text } = await server.ask('/docs');
  const script = text.split('<script>')[1]?.split('</script>')[0] ?? '';
  const ids = [...text.matchAll(/ id="([\w-]+)"/g)].map(([, id = '']) => id);
  const elements = new Map(ids.map((id) => [id, new FakeElement()]));
  const page = createContext({
    document: { getElementById: (id: string) => elements.get(id), createElement: () => new FakeElement() },
    fetch: (path: string, options: RequestInit) => fetch(`http://127.0.0.1:${server.port}${path}`, options),
  });
  runInContext(script, page);
  await expect.poll(() => elements.get('try')?.listeners.length).toBe(1);
  return elements;
}

test('[WB-04] the page draws every route with fields, errors and examples', async () => {
  await using server = await ScriptedServer.start({ apiKey: 'key-12345' });
  const elements = await openDocs(server);
  const drawn = elements.get('routes')?.textContent;
  for (const words of [
    'POST /execute/{language}',
    'GET /health',
    'files[].encoding',
    '"TOO_BUSY"',
    'limit_hit',
  ]) {
    expect(drawn).toContain(words);
  }
  expect(elements.get('version')?.textContent).toBe('9.8.7');
  expect(elements.get('key-label')?.hidden).toBe(false);
});

test('[WB-04] a person can run the example of the page, with the key', async () => {
  await using server = await ScriptedServer.start({ apiKey: 'key-12345' });
  const elements = await openDocs(server);
  Object.assign(elements.get('language') ?? {}, { value: 'python' });
  const submit = () => elements.get('try')?.listeners[0]?.({ preventDefault: () => undefined });
  submit();
  await expect.poll(() => elements.get('answer')?.textContent).toMatch(/^401\n.*UNAUTHORIZED/s);
  Object.assign(elements.get('key') ?? {}, { value: 'key-12345' });
  submit();
  await expect.poll(() => elements.get('answer')?.textContent).toMatch(/^200\n.*"stdout": "out\\n"/s);
  expect(server.runRequests).toMatchObject([{ language: 'python', code: "print('Hello, world!')" }]);
});
