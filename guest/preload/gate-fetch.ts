// Preload for code in a cell with walls of its own, where only parts of some hosts are allowed: fetch asks the gate for
// https in the clear, so that it sees paths and methods, and the gate speaks TLS with the host. Nothing else is changed.
// SECURITY: a way that can be taken, no wall: whoever opens a tunnel to such a host is refused.
import { gatedFetch } from './fetch.ts';
import { PermissionDenied } from './guard.ts';

const native = globalThis.fetch;
/** Servers of the code itself, which are not behind the gate. */
const LOCAL = ['localhost', '127.0.0.1', '[::1]'];
const REFUSED = 'x-hotcell-refused';

function isForGate(input, init): boolean {
  if (init?.unix !== undefined) return false;
  const address = input instanceof Request ? input.url : String(input);
  const url = URL.canParse(address) ? new URL(address) : undefined;
  return /^https?:$/.test(url?.protocol ?? '') && !LOCAL.includes(url?.hostname ?? '');
}

async function fetch(input, init) {
  if (!isForGate(input, init)) return native(input, init);
  const response = await gatedFetch(input, init);
  if (response.headers.has(REFUSED)) throw new PermissionDenied((await response.text()).trim());
  return response;
}

fetch.preconnect = () => {};
globalThis.fetch = fetch;
