import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Why there can be no certificates here, or undefined. */
export function whyNoCertificates(): string | undefined {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'openssl is not installed (apt-get install openssl)';
  }
}

/** Who signs certificates. Each has a folder of its own, with ca.pem in it. */
export class Authority {
  readonly folder: string;

  constructor(parent: string, name: string) {
    this.folder = join(parent, name);
    mkdirSync(this.folder);
    // prettier-ignore
    openssl(this.folder, [
      'req', '-x509', ...NEW_KEY, '-keyout', 'ca-key.pem', '-out', 'ca.pem', '-days', '2', '-subj', `/CN=${name}`,
      '-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign',
    ]);
  }

  /** Makes NAME.pem and NAME-key.pem for the given names, such as `IP:127.0.0.1`. */
  issue(name: string, altNames: readonly string[]): { cert: string; key: string } {
    const [cert, key] = [`${name}.pem`, `${name}-key.pem`];
    writeFileSync(join(this.folder, 'extensions'), `subjectAltName=${altNames.join(',')}\n`);
    // prettier-ignore
    openssl(this.folder, ['req', ...NEW_KEY, '-keyout', key, '-out', 'request.pem', '-subj', `/CN=${name}`]);
    // prettier-ignore
    openssl(this.folder, [
      'x509', '-req', '-in', 'request.pem', '-CA', 'ca.pem', '-CAkey', 'ca-key.pem', '-CAcreateserial',
      '-out', cert, '-days', '2', '-extfile', 'extensions',
    ]);
    return { cert: join(this.folder, cert), key: join(this.folder, key) };
  }
}

/** Elliptic curves, because keys of RSA take their time. */
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

function openssl(folder: string, args: readonly string[]): void {
  execFileSync('openssl', [...args], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
}
