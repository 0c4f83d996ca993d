/**
 * The rest of a process that was killed: nothing that it awaits ever comes, nothing that it does
 * has an effect.
 */
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
 * Once the process is killed, calls of these methods never answer, and answers on their way never
 * arrive.
 */
export const mortal = <T extends object>(life: Life, target: T): T =>
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
            // The server ends the connections of a process that dies.
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
