import type { NatsConnection } from '@nats-io/transport-node';
import type { NatsLink } from '@antiphon/messaging';

const PREFIXED: ReadonlySet<string | symbol> = new Set(['publish', 'request', 'subscribe']);

/**
 * The same link with every subject under a prefix, so that specs that run side by side do not hear
 * each other. Replies go to the connection's own inbox, which is nobody else's anyway.
 */
export const isolatedLink = (link: NatsLink, prefix: string): NatsLink => ({
  ...link,
  connection: new Proxy(link.connection, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      if (!PREFIXED.has(name)) return member.bind(target) as unknown;
      const method = member as (...args: unknown[]) => unknown;
      return (subject: string, ...rest: unknown[]) => method.call(target, `${prefix}.${subject}`, ...rest);
    },
  }) as NatsConnection,
});
