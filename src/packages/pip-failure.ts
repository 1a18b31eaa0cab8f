import { HotcellError } from '../core/errors.ts';
import type { FailedInstall } from './ecosystem.ts';
import { isPythonName, normalName } from './pip-spec.ts';

const LONGEST_REASON = 300;
const HINT = 'Correct the name or the version. Only packages that come built for this platform are taken.';

/** Names the package, and says why there is none. */
export function explainPip({ request, words, refusals, isTooLarge }: FailedInstall): HotcellError {
  const text = words.replaceAll(/[^\P{Cc}\n]|\p{Cf}/gu, '');
  const [, wanted = ''] = /No matching distribution found for (\S+)/.exec(text) ?? [];
  const [name = ''] = /^[\w.-]+/.exec(wanted) ?? [];
  const isNamed = isPythonName(name);
  const names = isNamed ? normalName(name) : request.specs.map((spec) => spec.name).join(', ');
  const because = (reason: string, hint = HINT): HotcellError =>
    new HotcellError('PACKAGE_UNAVAILABLE', `${names} cannot be installed: ${reason}`, { hint });
  const [refusal] = refusals;
  if (refusal !== undefined) return because(`the gate refuses ${refusal.host}: ${refusal.reason}`);
  if (isTooLarge || /No space left/i.test(text)) return because('it is too large');
  if (/Max retries|NewConnection|ProxyError|ConnectTimeout|ReadTimeout|SSLError/.test(text)) {
    return because('the index cannot be reached', 'Try again later.');
  }
  if (/from versions: none/.test(text)) {
    return because('the index has no such package, or none that comes built for this platform');
  }
  if (isNamed) return because(`there is no version ${wanted.slice(name.length, 60)}`);
  const line = text.split('\n').find((one) => one.startsWith('ERROR:')) ?? 'pip gave no reason';
  return because(line.replace(/^ERROR: /, '').slice(0, LONGEST_REASON));
}
