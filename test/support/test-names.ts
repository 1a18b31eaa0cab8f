import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';

/**
 * For `--import`: in the process that loads it, names that end in .test are this machine, and no other name is different
 * for it. Real names of the loopback do not serve, since programs do not ask a proxy for them.
 */
const real = dns.lookup;

async function lookup(host: string, options: { all: true }): Promise<{ address: string; family: number }[]> {
  return host.endsWith('.test') ? [{ address: '127.0.0.1', family: 4 }] : real(host, options);
}

dns.lookup = lookup as typeof real;
syncBuiltinESMExports();
