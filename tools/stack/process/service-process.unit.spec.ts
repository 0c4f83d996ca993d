import { describe, expect, it } from '@jest/globals';
import { loadConfig } from '@antiphon/config';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { serviceEnvironment } from './service-environment.js';
import type { Environment } from './service-environment.js';

/** Secrets and settings of a developer's shell, which no service asks for. */
const SHELL: Environment = {
  PATH: '/bin',
  AWS_SECRET_ACCESS_KEY: 'canary-aws',
  GITHUB_TOKEN: 'canary-github',
  NPM_TOKEN: 'canary-npm',
  PGPASSWORD: 'canary-pg',
  SSH_AUTH_SOCK: '/canary-ssh',
  npm_config_registry: 'x',
  ANTIPHON_DATABASE_URL: 'postgresql://owner:canary-owner@db/antiphon',
  ANTIPHON_NATS_URL: 'nats://operator:canary-operator@nats',
  ANTIPHON_OPERATOR_NATS_PASSWORD: 'canary-operator',
  ANTIPHON_TOKEN: 'canary-client',
  NODE_CHANNEL_FD: '3',
};
/** Variables that some services need. */
const USED: Environment = {
  ANTHROPIC_API_KEY: 'canary-anthropic',
  ANTIPHON_GATEWAY_TOKEN: 'canary-gateway-of-32-characters-or-more',
  ANTIPHON_MASTER_KEY_FILE: '/canary-master',
  ANTIPHON_LOG_SIGNING_KEY_FILE: '/canary-signing',
  ANTIPHON_ARCHIVE_FOLDER: '/archives',
  ANTIPHON_LOG_LEVEL: 'debug',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
  FAILPOINTS: '@/tmp/plan',
};

const config = loadConfig({ env: USED, cwd: '/', homeDir: '/nowhere' });
const environment = (
  service: ServiceName,
  problem: string | null = null,
  variables: Environment = { ...SHELL, ...USED },
): Environment =>
  serviceEnvironment(
    {
      service,
      serviceId: `${service}-1-abcd`,
      host: '127.0.0.1',
      port: 0,
      home: '/home/x/.antiphon',
      cache: '/cache',
      configuration: {
        config,
        file: '/etc/antiphon.toml',
        folder: problem === null ? null : '/etc',
        problem,
      },
      connections: {
        databaseUrl: 'postgresql://antiphon_x@127.0.0.1/antiphon',
        ...(service === 'memory' && { archiverUrl: 'postgresql://antiphon_archiver@127.0.0.1/antiphon' }),
        natsUrl: 'nats://127.0.0.1:4222',
        natsUser: service,
        natsPassword: 'secret',
        temporalAddress: '127.0.0.1:7233',
        temporalUi: 'http://127.0.0.1:8233',
      },
    },
    variables,
  );

describe('the environment of a service', () => {
  it('has its own addresses and credentials', () =>
    expect(environment('agent')).toMatchObject({
      ANTIPHON_SERVICE_ID: 'agent-1-abcd',
      ANTIPHON_SERVICE_DATABASE_URL: 'postgresql://antiphon_x@127.0.0.1/antiphon',
      ANTIPHON_SERVICE_NATS_USER: 'agent',
      ANTIPHON_TEMPORAL_ADDRESS: '127.0.0.1:7233',
      ANTIPHON_TEMPORAL_UI_URL: 'http://127.0.0.1:8233',
      ANTIPHON_CONFIG: '/etc/antiphon.toml',
      ANTIPHON_SERVICE_HTTP_PORT: '0',
    }));

  // @shows review1-13
  it.each(SERVICES)('of %s has nothing of the shell that it does not need', (service) => {
    const names = Object.keys(environment(service));
    expect(names.filter((name) => name in SHELL)).toEqual(['PATH']);
  });

  it.each<[string, readonly ServiceName[]]>([
    ['ANTHROPIC_API_KEY', ['agent']],
    ['ANTIPHON_GATEWAY_TOKEN', ['gateway']],
    ['ANTIPHON_MASTER_KEY_FILE', ['agent']],
    ['ANTIPHON_LOG_SIGNING_KEY_FILE', ['memory']],
    ['ANTIPHON_ARCHIVE_FOLDER', ['agent', 'memory']],
    ['ANTIPHON_FILES_FOLDER', ['agent']],
    ['ANTIPHON_ARCHIVER_DATABASE_URL', ['memory']],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', SERVICES],
    ['FAILPOINTS', SERVICES],
    ['ANTIPHON_LOG_LEVEL', SERVICES],
  ])('passes %s to %j only', (name, services) =>
    expect(SERVICES.filter((service) => environment(service)[name] !== undefined)).toEqual(services),
  );

  it('archives old events to a folder of the home, unless the operator names another', () => {
    const folders = (variables: Environment) =>
      SERVICES.map((service) => environment(service, null, variables)['ANTIPHON_ARCHIVE_FOLDER']);
    const own = '/home/x/.antiphon/archives';
    expect(folders({})).toEqual(SERVICES.map((name) => (/agent|memory/.test(name) ? own : undefined)));
    expect(new Set(folders({ ANTIPHON_ARCHIVE_FOLDER: '/elsewhere' }))).toEqual(
      new Set([undefined, '/elsewhere']),
    );
  });

  it('names the default provider to services that do not have its key', () => {
    const { ANTIPHON_CONFIG: _, ...env } = environment('gateway');
    const { providers } = loadConfig({ env, cwd: '/', homeDir: '/nowhere', requireKeys: false });
    expect(config.providers[0]?.kind).toBe('anthropic');
    expect(providers[0]?.kind).toBe('anthropic');
  });

  it('names the problem of a broken configuration, and the folder of its relative paths', () =>
    expect(environment('agent', 'line 3: no such key')).toMatchObject({
      ANTIPHON_CONFIG_PROBLEM: 'line 3: no such key',
      ANTIPHON_CONFIG_FOLDER: '/etc',
    }));
});
