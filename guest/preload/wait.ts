// Preload for a Bun that waits for its code, where nothing else is loaded before it. Bun reads the code afterwards.
import { loadPackages, readPackages, waitForGo } from './waiting.ts';

const OWN = [import.meta.path, import.meta.path.replace('wait.ts', 'waiting.ts')];
const TURNS = 64;

/** Bun enters a module in its registry only when the module is done. */
function removeTraces(turns: number): void {
  for (const path of OWN) delete require.cache[path];
  if (turns > 0) queueMicrotask(() => removeTraces(turns - 1));
}

await loadPackages(readPackages());
waitForGo();
const at = process.execArgv.indexOf(import.meta.path);
if (at > 0) process.execArgv.splice(at - 1, 2);
removeTraces(TURNS);
