import { isAppError, transient } from '@antiphon/kernel';
import type { Clock, JsonValue } from '@antiphon/kernel';
import type { HealthReport } from '@antiphon/contracts/messaging';
import type { Logger } from '@antiphon/observability';
import type { ServiceIdentity } from './service-identity.js';

/** Proves by using it that a dependency works; throws if it does not. May answer a short detail to show. */
export type HealthCheck = () => Promise<string | undefined | void>;

/** What a service knows about its own health, for `/readyz` and `cmd.<service>.health.check`. */
export interface HealthRegistry {
  /** A service is ready only while each of its checks passes within a second. */
  addCheck(name: string, check: HealthCheck): void;
  /** Something that only this service knows, such as its provider or its plug-ins; shown, not judged. */
  addFact(name: string, fact: () => JsonValue | Promise<JsonValue>): void;
  /** Asks everything now; reports that are asked for at the same time share one round of checks. */
  report(): Promise<HealthReport>;
}

type Checked = HealthReport['checks'][number];

const CHECK_TIMEOUT_MS = 1_000;

const timeLimited = <T>(work: Promise<T>, name: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    const error = transient('HEALTH.TIMEOUT', `${name} did not answer within ${CHECK_TIMEOUT_MS} ms`);
    timer = setTimeout(() => reject(error), CHECK_TIMEOUT_MS);
  });
  return Promise.race([work, limit]).finally(() => clearTimeout(timer));
};

// Only an AppError's text is made to be shown; others may carry addresses or SQL, and go to the log.
const describe = (error: unknown): string => (isAppError(error) ? error.message : 'not reachable');

/** Runs checks; a check that fails is logged when it begins to, and again when it passes, not each time it is asked. */
const createChecker = (logger: Logger): ((name: string, check: HealthCheck) => Promise<Checked>) => {
  const failing = new Set<string>();
  return async (name, check) => {
    try {
      const detail = await timeLimited(Promise.resolve(check()), name);
      if (failing.delete(name)) logger.info({ check: name }, 'a health check passes again');
      return { name, healthy: true, ...(typeof detail === 'string' ? { detail } : {}) };
    } catch (error) {
      if (!failing.has(name)) logger.warn({ err: error, check: name }, 'a health check fails');
      failing.add(name);
      return { name, healthy: false, detail: describe(error) };
    }
  };
};

export const createHealthRegistry = (
  identity: ServiceIdentity,
  clock: Clock,
  logger: Logger,
): HealthRegistry => {
  const checks = new Map<string, HealthCheck>();
  const facts = new Map<string, () => JsonValue | Promise<JsonValue>>();
  const runCheck = createChecker(logger);
  let running: Promise<HealthReport> | undefined;

  const round = async (): Promise<HealthReport> => {
    const checked = await Promise.all([...checks].map(([name, check]) => runCheck(name, check)));
    const known = await Promise.all([...facts].map(async ([name, fact]) => [name, await fact()] as const));
    return {
      service: identity.service,
      healthy: checked.every(({ healthy }) => healthy),
      pid: identity.pid,
      uptimeMs: clock.now() - identity.startedAt,
      version: identity.version,
      checks: checked,
      facts: Object.fromEntries(known) as HealthReport['facts'],
    };
  };

  return {
    addCheck: (name, check) => void checks.set(name, check),
    addFact: (name, fact) => void facts.set(name, fact),
    report: () => (running ??= round().finally(() => (running = undefined))),
  };
};
