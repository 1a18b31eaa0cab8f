import { access, constants } from 'node:fs/promises';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where distributions keep the authorities that they trust. */
const USUAL_PATHS: readonly string[] = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * The file with the authorities that this machine trusts, so that programs in cells trust them, too: behind a proxy of a
 * company there is one more. Undefined where there is none. NODE_EXTRA_CA_CERTS is the last, since it may hold only extra ones.
 */
export async function caBundlePath(env: Environment): Promise<string | undefined> {
  const named = [env['SSL_CERT_FILE'] ?? '', ...USUAL_PATHS, env['NODE_EXTRA_CA_CERTS'] ?? ''];
  const paths = named.filter((path) => path !== '');
  const readable = await Promise.all(paths.map(isReadable));
  return paths.find((_, index) => readable[index]);
}

async function isReadable(path: string): Promise<boolean> {
  return access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
}

/** What makes node, npm, pip, git, curl and openssl use the bundle at `path` in the cell. */
export function caVariables(path: string): Readonly<Record<string, string>> {
  return {
    SSL_CERT_FILE: path,
    NODE_EXTRA_CA_CERTS: path,
    PIP_CERT: path,
    REQUESTS_CA_BUNDLE: path,
    CURL_CA_BUNDLE: path,
    GIT_SSL_CAINFO: path,
  };
}
