import { messageOf } from '../../src/core/errors.ts';
import { openFromWords, request, type SiteWords } from './workbench-site.ts';

/** A server of its own that a test can kill: starts code that goes on for ever, and says what it has said. */
const words = JSON.parse(process.argv[2] ?? '{}') as SiteWords & { readonly code: string };
try {
  const workbenches = await openFromWords(words);
  const run = workbenches.open({ tenant: 'me' }).run(request(words.code));
  run.watch(() => {
    if (run.output().stdout.includes('begun')) process.stdout.write('running\n');
  });
  const { status, message } = await run.result;
  process.stdout.write(`ended: ${status} ${message ?? ''}\n`);
} catch (error) {
  process.stdout.write(`failed: ${messageOf(error)}\n`);
}
