import { describe, expect, test } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import { ServicesWatch } from './services-watch.ts';

const AWAY = new HotcellError('DRIVER_UNAVAILABLE', 'away');

describe('the watch', () => {
  test('[CX-15] asks nobody as long as all is well', async () => {
    let asked = 0;
    const watch = new ServicesWatch(
      () => Promise.resolve(++asked > 0),
      () => {},
      1,
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect([asked, watch.problem]).toEqual([0, undefined]);
    watch.close();
  });

  test('[CX-15, CX-08] remembers a problem until the services answer, whatever they do meanwhile', async () => {
    const answers = [
      () => Promise.resolve(false),
      () => Promise.reject(new Error('hung')),
      () => Promise.resolve(true),
    ];
    let asked = 0;
    const back = Promise.withResolvers<undefined>();
    const ask = (): Promise<boolean> => (answers[asked++] ?? (() => Promise.resolve(true)))();
    const watch = new ServicesWatch(ask, () => back.resolve(undefined), 1);
    watch.note(AWAY);
    watch.note(AWAY);
    expect(watch.problem).toBe(AWAY);
    await back.promise;
    expect([asked, watch.problem]).toEqual([3, undefined]);
    watch.close();
  });

  test('ends with its driver', async () => {
    let asked = 0;
    const watch = new ServicesWatch(
      () => Promise.resolve(++asked < 0),
      () => {},
      1,
    );
    watch.close();
    watch.note(AWAY);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(asked).toBe(0);
  });
});
