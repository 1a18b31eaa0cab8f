/** The first signal asks for an orderly end; the second one is not kept waiting. */
export function nextStop(signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let asked = false;
  for (const name of signals) {
    process.on(name, () => {
      if (asked) process.exit(1);
      asked = true;
      resolve(name);
    });
  }
  return promise;
}
