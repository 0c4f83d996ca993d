import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import type { Server, TLSSocket } from 'node:tls';
import { silentLogger } from '@antiphon/observability';
import { createCertificates, until } from '@antiphon/testing';
import type { TestCertificates } from '@antiphon/testing';
import { TEMPORAL_NAMESPACE, openTemporal } from './temporal-link.js';
import { readTemporalServer } from './temporal-server.js';
import { startWorker } from './worker-host.js';

let certificates: TestCertificates;
let terminator: Server;
const sockets = new Set<TLSSocket>();

/**
 * Ends TLS in front of the real engine and asks clients for a certificate. Temporal's development
 * server has no setting for TLS.
 */
const startTerminator = async (): Promise<Server> => {
  const engine = new URL(`tcp://${process.env['ANTIPHON_TEST_TEMPORAL_ADDRESS']}`);
  const server = createServer(
    {
      cert: readFileSync(certificates.serverCert),
      key: readFileSync(certificates.serverKey),
      ca: readFileSync(certificates.ca),
      ...{ requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2'] },
    },
    (socket) => {
      sockets.add(socket);
      const plain = connect(Number(engine.port), engine.hostname);
      const end = (): void => {
        sockets.delete(socket);
        socket.destroy();
        plain.destroy();
      };
      for (const one of [socket, plain]) one.on('error', end).on('close', end);
      socket.pipe(plain).pipe(socket);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
};

beforeAll(async () => {
  certificates = createCertificates();
  terminator = await startTerminator();
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => terminator.close(resolve));
  certificates.remove();
});

const serverWith = (env: Record<string, string>) => {
  const address = `127.0.0.1:${(terminator.address() as AddressInfo).port}`;
  const server = readTemporalServer({ ANTIPHON_TEMPORAL_ADDRESS: address, ...env });
  if (server === undefined) throw new Error('no address');
  return server;
};
const withClient = () => ({
  ANTIPHON_TEMPORAL_CERT_FILE: certificates.clientCert,
  ANTIPHON_TEMPORAL_KEY_FILE: certificates.clientKey,
});

const describeNamespace = async (env: Record<string, string>): Promise<string | null | undefined> => {
  const link = openTemporal(serverWith(env));
  try {
    const { namespaceInfo } = await link.use((client) =>
      client.workflowService.describeNamespace({ namespace: TEMPORAL_NAMESPACE }),
    );
    return namespaceInfo?.name;
  } finally {
    await link.close();
  }
};

describe('a connection to Temporal', () => {
  it('verifies the server with a CA, and shows its own certificate', async () =>
    expect(await describeNamespace({ ...withClient(), ANTIPHON_TEMPORAL_CA_FILE: certificates.ca })).toBe(
      TEMPORAL_NAMESPACE,
    ));

  it('is refused by a wrong CA, name or client certificate, and without TLS', async () => {
    const environments: Record<string, string>[] = [
      { ...withClient(), ANTIPHON_TEMPORAL_CA_FILE: certificates.otherCa },
      {
        ...{ ...withClient(), ANTIPHON_TEMPORAL_CA_FILE: certificates.ca },
        ANTIPHON_TEMPORAL_TLS_SERVER_NAME: 'stranger.example',
      },
      { ...withClient(), ANTIPHON_TEMPORAL_TLS: 'true' },
      {},
      // Without the certificate that the server asks for.
      { ANTIPHON_TEMPORAL_CA_FILE: certificates.ca },
    ];
    // Concurrent: each is tried until its deadline.
    const codes = await Promise.all(
      environments.map((env) =>
        describeNamespace(env).catch((error: unknown) => (error as { code?: unknown }).code),
      ),
    );
    expect(codes).toEqual(codes.map(() => 'TEMPORAL.UNAVAILABLE'));
  });

  const start = (caFile: string, onPolling?: () => void) =>
    startWorker({
      server: serverWith({ ...withClient(), ANTIPHON_TEMPORAL_CA_FILE: caFile }),
      ...{ namespace: TEMPORAL_NAMESPACE, taskQueue: 'spec-tls', identity: 'spec', logger: silentLogger },
      activities: { nothing: () => Promise.resolve() },
      ...(onPolling ? { onPolling } : {}),
    });

  it('of a worker that is stopped while it connects reports no polls', async () => {
    let polls = 0;
    await start(certificates.ca, () => void polls++).stop();
    const later = start(certificates.ca);
    await until(() => later.isPolling());
    await later.stop();
    expect(polls).toBe(0);
  });

  it('of a worker is verified in the same way, and polls', async () => {
    let polls = 0;
    const count = (): void => void polls++;
    const other = start(certificates.otherCa, count);
    const worker = start(certificates.ca, count);
    await until(() => worker.isPolling());
    expect([polls, other.isPolling()]).toEqual([1, false]);
    await Promise.all([worker.stop(), other.stop()]);
  });
});
