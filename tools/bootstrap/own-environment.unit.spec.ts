import { describe, expect, it } from '@jest/globals';
import { tmpdir } from 'node:os';
import { ownEnvironment, reachLoopbackDirectly } from './own-environment.mjs';

describe('the environment of the programs of a start', () => {
  // @shows U57 U58
  it.each([
    ...['PGHOST', 'PGSSLMODE', 'PGOPTIONS', 'PGPASSWORD', 'PGSERVICE', 'PGCLIENTENCODING'],
    ...['NATS_URL', 'NATS_USER', 'TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'TEMPORAL_TLS_CERT'],
    ...['NODE_OPTIONS', 'NODE_PATH', 'NODE_USE_ENV_PROXY', 'LANG', 'LC_ALL', 'LC_CTYPE', 'LANGUAGE'],
  ])('lacks %s of the user', (name) =>
    expect(ownEnvironment({ [name]: 'x', PATH: '/bin' })).toEqual({ PATH: '/bin' }),
  );

  it.each([
    ...['PATH', 'HOME', 'TZ', 'HTTPS_PROXY', 'http_proxy', 'NO_PROXY', 'ANTHROPIC_API_KEY'],
    ...['ANTIPHON_DATABASE_URL', 'ANTIPHON_NATS_URL', 'ANTIPHON_TEMPORAL_ADDRESS', 'ANTIPHON_NODE_OPTIONS'],
    ...['NODE_EXTRA_CA_CERTS', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'PG_LIKE', 'MY_PGHOST'],
  ])('has %s of the user', (name) => expect(ownEnvironment({ [name]: 'x' })).toEqual({ [name]: 'x' }));

  it('has a folder of temporary files that can be used, and no other', () => {
    expect(ownEnvironment({ TMPDIR: tmpdir() })).toEqual({ TMPDIR: tmpdir() });
    for (const TMPDIR of ['/dev/null/below', '', '/dev/null']) expect(ownEnvironment({ TMPDIR })).toEqual({});
  });
});

describe('a program that the user runs', () => {
  // @shows U59
  it('reaches loopback without a proxy, and keeps the exceptions of the user', () => {
    const env: NodeJS.ProcessEnv = { NO_PROXY: 'corp.example,127.0.0.1', HTTPS_PROXY: 'http://p:1' };
    reachLoopbackDirectly(env);
    const rules = 'corp.example,127.0.0.1,localhost,::1,[::1]';
    expect(env).toEqual({ NO_PROXY: rules, no_proxy: rules, HTTPS_PROXY: 'http://p:1' });
  });

  it('takes the exceptions in lower case first, as Node does', () => {
    const env: NodeJS.ProcessEnv = { NO_PROXY: 'upper', no_proxy: 'lower' };
    reachLoopbackDirectly(env);
    expect(env['no_proxy']).toBe('lower,localhost,127.0.0.1,::1,[::1]');
  });

  // @shows U57
  it('connects to the database as its address says', () => {
    const env: NodeJS.ProcessEnv = { PGSSLMODE: 'require', PGOPTIONS: '-c x=y', PATH: '/bin' };
    reachLoopbackDirectly(env);
    expect(Object.keys(env).filter((name) => name.startsWith('PG'))).toEqual([]);
  });
});
