import { PackageSite, prepare } from './package-site.ts';

/** For tests that kill it: installs packages of a registry on the loopback into a folder, and says when it has. */
const [folder = '', hosts = '', registry = '', ...texts] = process.argv.slice(2);
const site = new PackageSite(
  { hosts: [hosts], variables: { npm_config_registry: registry } },
  { loopback: true, folder },
);
const store = await site.open();
process.stdout.write('open\n');
const prepared = await prepare(store, ...texts);
process.stdout.write(`${JSON.stringify(prepared)}\n`);
await site[Symbol.asyncDispose]();
