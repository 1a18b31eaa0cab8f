import { describe, expect, test } from 'vitest';
import { EngineRefusal } from './engine.ts';
import { readEngineMessages, type EngineMessage } from './engine-messages.ts';

async function read(...chunks: readonly (string | Uint8Array)[]): Promise<EngineMessage[]> {
  const messages: EngineMessage[] = [];
  async function* stream(): AsyncGenerator<string | Uint8Array> {
    yield* chunks;
  }
  await readEngineMessages(stream(), 'pull x', (message) => messages.push(message));
  return messages;
}

describe('messages', () => {
  test('come whole, however the stream is cut', async () => {
    const bytes = new TextEncoder().encode('{"status":"größer"}\r\n{"stream":"a\\n"}\n{"id":"x"}');
    const chunks = Array.from(bytes, (byte) => Uint8Array.of(byte));
    expect(await read(...chunks)).toEqual([{ status: 'größer' }, { stream: 'a\n' }, { id: 'x' }]);
  });

  test('what is no message is passed over', async () => {
    expect(await read('\n\nnot json\n{"status":1}\n[]\n{"status":"a","more":{}}\n')).toEqual([
      { status: 'a', more: {} },
    ]);
  });

  test('[CX-08] an error in a reply of status 200 is noticed', async () => {
    const failed = read(
      '{"status":"Pulling"}\n{"errorDetail":{"message":"no space left on device"},"error":"no space left on device"}\n',
    );
    await expect(failed).rejects.toThrow(EngineRefusal);
    await expect(failed).rejects.toMatchObject({ words: 'no space left on device' });
  });
});
