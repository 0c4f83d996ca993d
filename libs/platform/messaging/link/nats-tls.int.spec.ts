import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@antiphon/observability';
import { createCertificates, startNatsServer } from '@antiphon/testing';
import type { TestCertificates, TestNatsServer } from '@antiphon/testing';
import { connectNats, readNatsTls } from './nats-link.js';
import type { NatsTls } from './nats-link.js';

let certificates: TestCertificates;
let server: TestNatsServer;

const connect = async (tls: NatsTls | undefined, scheme = 'nats'): Promise<boolean> => {
  const url = server.url.replace(/^nats/, scheme);
  const options = { url, service: 'agent', logger: silentLogger, connectTimeoutMs: 1_500 };
  const link = await connectNats({ ...options, tls });
  try {
    await link.connection.flush();
    return link.connection.info?.tls_required === true;
  } finally {
    await link.drain();
  }
};

describe('a connection to NATS', () => {
  beforeAll(async () => {
    certificates = createCertificates();
    const { ca, serverCert, serverKey } = certificates;
    server = await startNatsServer({
      config: `tls { cert_file: "${serverCert}", key_file: "${serverKey}", ca_file: "${ca}", verify: true }`,
    });
  });
  afterAll(async () => {
    await server.remove();
    certificates.remove();
  });

  const client = (): NatsTls => ({ certFile: certificates.clientCert, keyFile: certificates.clientKey });

  it.each(['nats', 'tls'])(
    'verifies the server with a CA, and shows its own certificate (%s://)',
    async (scheme) => expect(await connect({ ...client(), caFile: certificates.ca }, scheme)).toBe(true),
  );

  it('refuses a server of another CA, and one that it cannot verify', async () => {
    await expect(connect({ ...client(), caFile: certificates.otherCa })).rejects.toMatchObject({
      code: 'MESSAGING.UNAVAILABLE',
    });
    await expect(connect(undefined)).rejects.toMatchObject({ code: 'MESSAGING.UNAVAILABLE' });
  });

  it('is refused without the certificate that the server asks for', async () =>
    expect(connect({ caFile: certificates.ca })).rejects.toMatchObject({ code: 'MESSAGING.UNAVAILABLE' }));

  it('with a CA refuses a server without TLS', async () => {
    const plain = await startNatsServer();
    const options = { url: plain.url, service: 'agent', logger: silentLogger, connectTimeoutMs: 1_500 };
    await expect(connectNats({ ...options, tls: { caFile: certificates.ca } })).rejects.toMatchObject({
      code: 'MESSAGING.UNAVAILABLE',
    });
    await plain.remove();
  });

  it('reads its files from the environment', () => {
    expect(readNatsTls({ ANTIPHON_NATS_CA_FILE: '' })).toBeUndefined();
    expect(readNatsTls({ ANTIPHON_NATS_CA_FILE: '/ca', ANTIPHON_NATS_KEY_FILE: '/key' })).toEqual({
      caFile: '/ca',
      keyFile: '/key',
    });
  });
});
