import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { AppError, ERROR_KINDS, transient } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { createHealthRegistry } from './health-registry.js';
import { problemOf, retryAfterSeconds, statusOf } from './problem.filter.js';
import { VERSION, readHostedEnvironments, readServiceEnv } from './service-env.js';

const identity = {
  service: 'agent',
  id: 'agent-1',
  pid: 1,
  version: VERSION,
  startedAt: 1_000,
  home: '/',
} as const;

describe('health registry', () => {
  const registry = () => createHealthRegistry(identity, { now: () => 3_000 }, silentLogger);

  it('is healthy while every check passes', async () => {
    const health = registry();
    health.addCheck('a', () => Promise.resolve('fine'));
    health.addFact('provider', () => 'scripted');
    expect(await health.report()).toMatchObject({
      healthy: true,
      uptimeMs: 2_000,
      checks: [{ name: 'a', healthy: true, detail: 'fine' }],
      facts: { provider: 'scripted' },
    });
  });

  it('stays healthy with a warning, and has none from one that cannot be read', async () => {
    const health = registry();
    health.addWarning('agents', async () => 'one is in error');
    health.addWarning('none', async () => null);
    health.addWarning('broken', () => Promise.reject(new Error('no connection')));
    expect(await health.report()).toMatchObject({
      ...{ healthy: true, warnings: [{ name: 'agents', detail: 'one is in error' }] },
    });
    expect('warnings' in (await registry().report())).toBe(false);
  });

  it('is unhealthy while a check fails, and shows only safe details', async () => {
    const health = registry();
    health.addCheck('ours', () => Promise.reject(transient('X.DOWN', 'it is down')));
    health.addCheck('theirs', () => Promise.reject(new Error('connect postgres://u:p@host')));
    const { healthy, checks } = await health.report();
    expect(healthy).toBe(false);
    expect(checks.map(({ detail }) => detail)).toEqual(['it is down', 'not reachable']);
  });

  it('times out a hanging check and does not run it twice at once', async () => {
    const health = registry();
    let asked = 0;
    health.addCheck('hangs', () => new Promise(() => void asked++));
    const [one, two] = await Promise.all([health.report(), health.report()]);
    expect(asked).toBe(1);
    expect(one).toBe(two);
    expect(one.checks[0]).toMatchObject({ healthy: false });
  });
});

describe('problem', () => {
  it('has a status for every error kind', () => {
    expect(ERROR_KINDS.map((kind) => [kind, statusOf(kind)])).toEqual([
      ['invalid', 400],
      ['unauthenticated', 401],
      ['forbidden', 403],
      ['not_found', 404],
      ['rejected', 422],
      ['conflict', 409],
      ['transient', 503],
      ['exhausted', 429],
      ['provider', 502],
      ['bug', 500],
    ]);
  });

  it('contains the text and code of an error, without its cause and data', () => {
    const error = new AppError('conflict', 'LOG.VERSION_CONFLICT', 'too late', {
      cause: 'secret',
      data: { a: 'secret' },
    });
    expect(problemOf(error, 'req-1')).toEqual({
      type: 'urn:antiphon:error:LOG.VERSION_CONFLICT',
      title: 'Conflict',
      status: 409,
      detail: 'too late',
      instance: 'req-1',
      code: 'LOG.VERSION_CONFLICT',
    });
  });

  it('contains the difference of a stale file, and no other field of its data', () => {
    const data = { path: 'a.txt', digest: 'd', expected: 'e', diff: '@@', row: 'secret' };
    const error = new AppError('conflict', 'FILE.STALE', 'it changed', { data });
    expect(problemOf(error, 'req-1').data).toEqual({
      ...{ path: 'a.txt', digest: 'd', expected: 'e', diff: '@@' },
    });
  });

  it('contains a retry time where a retry helps', () => {
    expect(retryAfterSeconds(transient('X', 'x'))).toBe(1);
    expect(retryAfterSeconds(new AppError('exhausted', 'X', 'x', { data: { retryAfterSeconds: 2.1 } }))).toBe(
      3,
    );
    expect(retryAfterSeconds(new AppError('invalid', 'X', 'x'))).toBeUndefined();
  });
});

describe('service environment', () => {
  const env = {
    ANTIPHON_SERVICE_DATABASE_URL: 'postgresql://agent:hunter2@127.0.0.1/x',
    ANTIPHON_SERVICE_NATS_URL: 'nats://127.0.0.1:4222',
    ANTIPHON_HOME: '/home/antiphon',
  };

  it('has defaults for optional variables', () => {
    expect(readServiceEnv('agent', { ...env, ANTIPHON_SERVICE_HTTP_PORT: '' }, () => 'fresh')).toMatchObject({
      serviceId: 'agent-fresh',
      httpPort: undefined,
      logLevel: 'info',
    });
  });

  it.each([
    ['ANTIPHON_SERVICE_DATABASE_URL', 'mysql://agent:hunter2@127.0.0.1/x'],
    ['ANTIPHON_SERVICE_NATS_URL', 'http://hunter2'],
    ['ANTIPHON_SERVICE_HTTP_PORT', '70000'],
    ['ANTIPHON_SERVICE_HTTP_PORT', 'hunter2'],
    ['ANTIPHON_LOG_LEVEL', 'hunter2'],
  ])('rejects %s=%s without its value', (name, value) => {
    const read = () => readServiceEnv('agent', { ...env, [name]: value }, () => 'fresh');
    expect(read).toThrow(name);
    expect(read).not.toThrow('hunter2');
  });
});

describe('version', () => {
  it('equals the version of the root package', () => {
    const root = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(VERSION).toBe(root.version);
  });
});

describe('environments of hosted services', () => {
  const read = (text?: string) => readHostedEnvironments({ ANTIPHON_HOSTED_SERVICES: text });

  it('are found by the name of the service', () => {
    const environments = read('{"memory":{"A":"1"},"metering":{"A":"2"}}');
    expect([environments('memory'), environments('metering')]).toEqual([{ A: '1' }, { A: '2' }]);
  });

  it.each([
    [undefined, 'is missing or not JSON'],
    ['', 'is missing or not JSON'],
    ['{"memory":"hunter2"', 'is missing or not JSON'],
    ['{"memory":"hunter2"}', 'is not an object of variables for each service'],
    ['[1]', 'is not an object of variables for each service'],
    ['{"metering":{"A":"hunter2"}}', 'has no variables for memory'],
  ])('that are %j are refused, without a value', (text, problem) => {
    let refused: unknown;
    try {
      read(text)('memory');
    } catch (error) {
      refused = error;
    }
    expect(refused).toMatchObject({
      code: 'SERVICE.BAD_ENVIRONMENT',
      message: expect.stringContaining(problem),
    });
    expect(String(refused)).not.toContain('hunter2');
  });
});
