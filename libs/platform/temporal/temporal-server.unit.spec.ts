import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { readTemporalServer, toClientOptions, toConnectionOptions } from './temporal-server.js';

const folder = mkdtempSync(join(tmpdir(), 'antiphon-temporal-'));
const file = (name: string): string => {
  writeFileSync(join(folder, name), `${name}\n`);
  return join(folder, name);
};
afterAll(() => rmSync(folder, { recursive: true }));

const read = (env: Record<string, string>) =>
  readTemporalServer({ ANTIPHON_TEMPORAL_ADDRESS: 'temporal:7233', ...env });

describe('the settings of Temporal', () => {
  it('are a plain connection by default, and none without an address', () => {
    expect(read({})).toEqual({ address: 'temporal:7233', tls: false });
    expect(read({ ANTIPHON_TEMPORAL_ADDRESS: '' })).toBeUndefined();
  });

  it('have TLS with a CA, a client certificate and the name of the server', () =>
    expect(
      read({
        ANTIPHON_TEMPORAL_CA_FILE: file('ca'),
        ANTIPHON_TEMPORAL_CERT_FILE: file('crt'),
        ANTIPHON_TEMPORAL_KEY_FILE: file('key'),
        ANTIPHON_TEMPORAL_TLS_SERVER_NAME: 'temporal.internal',
      }),
    ).toEqual({
      address: 'temporal:7233',
      tls: {
        serverRootCACertificate: Buffer.from('ca\n'),
        clientCertPair: { crt: Buffer.from('crt\n'), key: Buffer.from('key\n') },
        serverNameOverride: 'temporal.internal',
      },
    }));

  it('send an API key over TLS only', () => {
    const server = read({ ANTIPHON_TEMPORAL_API_KEY_FILE: file('api-key') });
    expect(server).toEqual({ address: 'temporal:7233', tls: true, apiKey: 'api-key' });
    expect(toConnectionOptions(server ?? '')).toEqual(server);
    expect(() => read({ ANTIPHON_TEMPORAL_API_KEY: 'k', ANTIPHON_TEMPORAL_TLS: 'false' })).toThrow(
      'needs TLS',
    );
  });

  it('reach the server without a proxy, also where the process has proxy variables', () =>
    expect(toClientOptions('temporal:7233')).toEqual({
      ...{ address: 'temporal:7233', channelArgs: { 'grpc.enable_http_proxy': 0 } },
    }));

  it.each([
    [{ ANTIPHON_TEMPORAL_TLS: 'yes' }, 'true or false'],
    [{ ANTIPHON_TEMPORAL_CERT_FILE: file('crt') }, 'belong together'],
    [{ ANTIPHON_TEMPORAL_CA_FILE: '/nowhere/ca' }, '/nowhere/ca cannot be read (ENOENT)'],
    [{ ANTIPHON_TEMPORAL_TLS: 'false', ANTIPHON_TEMPORAL_CA_FILE: file('ca') }, 'is false'],
  ])('refuse %j', (env, message) => expect(() => read(env)).toThrow(message));
});
