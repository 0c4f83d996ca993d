import { describe, expect, it } from '@jest/globals';
import { serviceEnvironment } from './service-process.js';

const environment = (service: 'agent' | 'sandbox') =>
  serviceEnvironment(
    {
      service,
      serviceId: `${service}-1-abcd`,
      host: '127.0.0.1',
      port: 0,
      home: '/home/x/.antiphon',
      cache: '/cache',
      config: '/etc/antiphon.toml',
      connections: {
        databaseUrl: 'postgresql://antiphon_x@127.0.0.1/antiphon',
        natsUrl: 'nats://127.0.0.1:4222',
        natsUser: service,
        natsPassword: 'secret',
        temporalAddress: '127.0.0.1:7233',
        temporalUi: 'http://127.0.0.1:8233',
      },
    },
    {
      PATH: '/bin',
      ANTHROPIC_API_KEY: 'sk-1',
      ANTIPHON_DATABASE_URL: 'postgresql://owner:all@db/antiphon',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
      FAILPOINTS: '@/tmp/plan',
      npm_config_registry: 'x',
    },
  );

describe('the environment of a service', () => {
  it('has its own addresses and credentials, and not the owner’s', () => {
    const env = environment('agent');
    expect(env).toMatchObject({
      ANTIPHON_SERVICE_ID: 'agent-1-abcd',
      ANTIPHON_SERVICE_DATABASE_URL: 'postgresql://antiphon_x@127.0.0.1/antiphon',
      ANTIPHON_SERVICE_NATS_USER: 'agent',
      ANTIPHON_TEMPORAL_ADDRESS: '127.0.0.1:7233',
      ANTIPHON_TEMPORAL_UI_URL: 'http://127.0.0.1:8233',
      ANTIPHON_CONFIG: '/etc/antiphon.toml',
      ANTIPHON_SERVICE_HTTP_PORT: '0',
    });
    expect(env).not.toHaveProperty('ANTIPHON_DATABASE_URL');
    expect(env).not.toHaveProperty('npm_config_registry');
  });

  it('passes providers’ keys to the agent and not to the sandbox', () => {
    expect(environment('agent')['ANTHROPIC_API_KEY']).toBe('sk-1');
    expect(environment('sandbox')).not.toHaveProperty('ANTHROPIC_API_KEY');
    expect(environment('sandbox')['PATH']).toBe('/bin');
  });

  it('passes the traces’ collector and the failpoints to every service', () => {
    for (const service of ['agent', 'sandbox'] as const) {
      expect(environment(service)['OTEL_EXPORTER_OTLP_ENDPOINT']).toBe('http://127.0.0.1:4318');
      expect(environment(service)['FAILPOINTS']).toBe('@/tmp/plan');
    }
  });
});
