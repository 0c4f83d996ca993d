import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createCertificates, createTestDatabase, until } from '@antiphon/testing';
import type { TestCertificates, TestDatabase } from '@antiphon/testing';
import { withDatabaseTls } from './database-tls.js';
import { createPool, withRole } from './pool.js';

let database: TestDatabase;
let certificates: TestCertificates;

const onServer = async (...statements: string[]): Promise<void> => {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
};
/** Connects as a service does, and returns whether the connection is encrypted. */
const isEncrypted = async (url: string): Promise<boolean> => {
  const pool = createPool({ url, applicationName: 'spec', max: 1 });
  try {
    const { rows } = await pool.query<{ ssl: boolean }>(
      'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
    );
    return rows[0]?.ssl ?? false;
  } finally {
    await pool.end();
  }
};
// As the superuser: other roles may not read how their connection is encrypted.
const connect = (env: Record<string, string>): Promise<boolean> =>
  isEncrypted(withDatabaseTls(database.url, env));
/** Makes the server show a certificate. */
const useCertificate = (cert: string, key: string): Promise<void> =>
  onServer(
    `alter system set ssl_cert_file = '${cert}'`,
    `alter system set ssl_key_file = '${key}'`,
    'alter system set ssl = on',
    'select pg_reload_conf()',
  );

describe('a connection to PostgreSQL', () => {
  beforeAll(async () => {
    certificates = createCertificates();
    database = await createTestDatabase();
    await useCertificate(certificates.serverCert, certificates.serverKey);
    await until(() => connect({ ANTIPHON_DATABASE_SSLMODE: 'require' }).catch(() => false));
  });
  afterAll(async () => {
    await onServer(
      ...['ssl', 'ssl_cert_file', 'ssl_key_file'].map((name) => `alter system reset ${name}`),
      'select pg_reload_conf()',
    );
    await database.drop();
    certificates.remove();
  });

  it('is plain without settings, and verifies the server with a CA', async () => {
    expect(await connect({})).toBe(false);
    expect(await connect({ ANTIPHON_DATABASE_CA_FILE: certificates.ca })).toBe(true);
    expect(await connect({ ANTIPHON_DATABASE_SSLMODE: 'disable' })).toBe(false);
  });

  it.each(['verify-full', 'verify-ca', 'require'])('with %s refuses a server of another CA', async (mode) =>
    expect(
      connect({ ANTIPHON_DATABASE_SSLMODE: mode, ANTIPHON_DATABASE_CA_FILE: certificates.otherCa }),
    ).rejects.toThrow(/self-signed|unable to (get|verify)|certificate/),
  );

  it('with verify-full refuses a certificate of another name, and with verify-ca does not', async () => {
    const ca = { ANTIPHON_DATABASE_CA_FILE: certificates.ca };
    await useCertificate(certificates.strangerCert, certificates.strangerKey);
    await until(() =>
      connect(ca).then(
        () => false,
        (error: Error) => /altnames|Hostname/.test(error.message),
      ),
    );
    expect(await connect({ ...ca, ANTIPHON_DATABASE_SSLMODE: 'verify-ca' })).toBe(true);
    await useCertificate(certificates.serverCert, certificates.serverKey);
  });

  it('keeps the role and the settings of its address', async () => {
    const url = withDatabaseTls(withRole(database.url, 'antiphon_agent'), {
      ANTIPHON_DATABASE_CA_FILE: certificates.ca,
    });
    const pool = createPool({ url, applicationName: 'spec', max: 1 });
    const { rows } = await pool.query(`select current_setting('role') as role`).finally(() => pool.end());
    expect(rows).toEqual([{ role: 'antiphon_agent' }]);
    const own = `${database.url}?sslmode=disable`;
    expect(withDatabaseTls(own, { ANTIPHON_DATABASE_SSLMODE: 'require' })).toBe(own);
    expect(() => withDatabaseTls(own, { ANTIPHON_DATABASE_SSLMODE: 'prefer' })).toThrow('is one of');
  });
});
