import type { NatsConnection } from '@nats-io/transport-node';
import type { NatsLink } from '@antiphon/messaging';

/** A promise that never settles: a killed process gets no results. */
const never = (): Promise<never> => new Promise(() => undefined);

export interface Life {
  readonly dead: boolean;
  kill(): void;
}

export const createLife = (): Life => {
  let dead = false;
  return {
    get dead() {
      return dead;
    },
    kill: () => void (dead = true),
  };
};

/**
 * Wraps the methods of `target`. After the kill of its process, calls have no effect, and neither
 * they nor pending ones settle.
 */
export const killable = <T extends object>(life: Life, target: T): T =>
  new Proxy(target, {
    get: (object, name) => {
      const member: unknown = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      const method = member.bind(object) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        if (life.dead) return never();
        const result = method(...args);
        if (!(result instanceof Promise)) return result;
        return result.then(
          (value: unknown) => {
            if (!life.dead) return value;
            // The database server closes the connections of a dead process.
            (value as { release?: (destroy: boolean) => void } | null)?.release?.(true);
            return never();
          },
          (error: unknown) => {
            if (life.dead) return never();
            throw error;
          },
        );
      };
    },
  });

const PREFIXED: ReadonlySet<string | symbol> = new Set(['publish', 'request', 'subscribe']);

/**
 * Returns the link with a prefix on every subject, which separates concurrent specs. Replies go to
 * the connection's own inbox.
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
