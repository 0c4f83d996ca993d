import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Paths of PEM files of one authority, and of a server and a client that it certified. */
export interface TestCertificates {
  readonly ca: string;
  /** An authority that certified neither. */
  readonly otherCa: string;
  /** Valid for loopback. */
  readonly serverCert: string;
  readonly serverKey: string;
  /** Valid for another name. */
  readonly strangerCert: string;
  readonly strangerKey: string;
  readonly clientCert: string;
  readonly clientKey: string;
  remove(): void;
}

/** User of PostgreSQL where the tests run as root. */
const DATABASE_GROUP = 65_534;

/** Creates certificates with `openssl`, valid for a day. */
export const createCertificates = (): TestCertificates => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-certificates-'));
  chmodSync(folder, 0o711);
  const at = (name: string): string => join(folder, name);
  const run = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const key = (name: string): string[] => [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    name,
  ];
  const createAuthority = (name: string): string => {
    run('req', '-x509', ...key(`${name}.key`), '-out', `${name}.crt`, '-days', '1', '-subj', `/CN=${name}`);
    return at(`${name}.crt`);
  };
  const certify = (name: string, extension: string): void => {
    writeFileSync(at(`${name}.ext`), extension);
    run('req', ...key(`${name}.key`), '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    run(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      'ca.crt',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-days',
      '1',
      '-out',
      `${name}.crt`,
      '-extfile',
      `${name}.ext`,
    );
    // PostgreSQL reads a key of root by its group only.
    if (process.getuid?.() === 0) chownSync(at(`${name}.key`), 0, DATABASE_GROUP);
    chmodSync(at(`${name}.key`), process.getuid?.() === 0 ? 0o640 : 0o600);
    chmodSync(at(`${name}.crt`), 0o644);
  };
  const ca = createAuthority('ca');
  const otherCa = createAuthority('other');
  certify('server', 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
  certify('stranger', 'subjectAltName=DNS:stranger.example\n');
  certify('client', 'extendedKeyUsage=clientAuth\n');
  return {
    ca,
    otherCa,
    serverCert: at('server.crt'),
    serverKey: at('server.key'),
    strangerCert: at('stranger.crt'),
    strangerKey: at('stranger.key'),
    clientCert: at('client.crt'),
    clientKey: at('client.key'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};
