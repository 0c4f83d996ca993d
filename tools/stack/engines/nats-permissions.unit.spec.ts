import { describe, expect, it } from '@jest/globals';
import { SERVICES } from '@antiphon/contracts/messaging';
import { NATS_PERMISSIONS } from './nats-permissions.js';

/** NATS's own rule: `*` is one token, `>` is one or more. */
const covers = (pattern: string, subject: string): boolean => {
  const [want, have] = [pattern.split('.'), subject.split('.')];
  for (let i = 0; i < want.length; i++) {
    if (want[i] === '>') return have.length > i;
    if (have[i] === undefined || (want[i] !== '*' && want[i] !== have[i])) return false;
  }
  return want.length === have.length;
};
const may = (patterns: readonly string[], subject: string): boolean =>
  patterns.some((pattern) => covers(pattern, subject));

describe('subjects of the services', () => {
  it.each(SERVICES)('%s hears its own requests, its own inbox and hints, and nobody else’s', (service) => {
    const { subscribe } = NATS_PERMISSIONS[service];
    for (const other of SERVICES) {
      expect(may(subscribe, `cmd.${other}.turn.submit`)).toBe(other === service);
      expect(may(subscribe, `_INBOX.${other}.abc.1`)).toBe(other === service);
    }
    expect(may(subscribe, 'hint.log')).toBe(true);
    expect(subscribe.filter((pattern) => pattern === '>' || pattern.startsWith('_INBOX.>'))).toEqual([]);
  });

  it('asks only those whom its work needs', () => {
    const asks = (service: (typeof SERVICES)[number]): string[] =>
      SERVICES.filter((other) => may(NATS_PERMISSIONS[service].publish, `cmd.${other}.health.check`));
    expect(asks('gateway')).toEqual(['agent', 'sandbox', 'metering', 'memory']);
    expect(asks('agent')).toEqual(['sandbox', 'metering', 'memory']);
    expect([asks('sandbox'), asks('metering'), asks('memory')]).toEqual([[], [], []]);
  });

  it.each([
    ['live.default.some-session', ['agent']],
    ['evt.default.session.session-1', ['memory']],
    ['$JS.API.STREAM.DELETE.EVENTS', ['memory']],
    ['$JS.API.STREAM.CREATE.LIVE', ['agent']],
    ['$JS.API.STREAM.CREATE.OTHER', []],
    ['$JS.API.ACCOUNT.PURGE.X', []],
    ['dlq.metering-settle-calls', ['metering']],
  ])('lets only the right ones send to %s', (subject, allowed) => {
    const senders = SERVICES.filter((service) => may(NATS_PERMISSIONS[service].publish, subject));
    expect(senders).toEqual(allowed);
  });
});
