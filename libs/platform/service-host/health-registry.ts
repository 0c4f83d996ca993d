import { isAppError, transient, withTimeout } from '@antiphon/kernel';
import type { Clock, JsonValue } from '@antiphon/kernel';
import type { HealthReport } from '@antiphon/contracts/messaging';
import type { Logger } from '@antiphon/observability';
import type { ServiceIdentity } from './service-env.js';

/** Uses a dependency and throws if it does not work. May return a short detail for the report. */
export type HealthCheck = () => Promise<string | undefined | void>;

/** Collects the health of a service, for `/readyz` and `cmd.<service>.health.check`. */
export interface HealthRegistry {
  /** Adds a check. A service is ready only while each check passes within a second. */
  addCheck(name: string, check: HealthCheck): void;
  /**
   * Adds a fact for the report, such as the provider or the plug-ins; it does not affect readiness.
   */
  addFact(name: string, fact: () => JsonValue | Promise<JsonValue>): void;
  /**
   * Adds a restriction that does not affect readiness, such as agents in error. `warn` returns its
   * text, or null while there is none. An error or a timeout counts as none.
   */
  addWarning(name: string, warn: () => Promise<string | null>): void;
  /** Runs all checks now. Concurrent reports share one run. */
  report(): Promise<HealthReport>;
}

type Checked = HealthReport['checks'][number];

const CHECK_TIMEOUT_MS = 1_000;

// An AppError's text is safe to show; other texts may contain addresses or SQL and go to the log.
const describe = (error: unknown): string => (isAppError(error) ? error.message : 'not reachable');

/**
 * Makes the function that runs checks. It logs a check when it starts to fail and when it passes
 * again.
 */
const createChecker = (logger: Logger): ((name: string, check: HealthCheck) => Promise<Checked>) => {
  const failing = new Set<string>();
  return async (name, check) => {
    try {
      const detail = await withTimeout(Promise.resolve(check()), CHECK_TIMEOUT_MS, () =>
        transient('HEALTH.TIMEOUT', `${name} did not answer within ${CHECK_TIMEOUT_MS} ms`),
      );
      if (failing.delete(name)) logger.info({ check: name }, 'health check passed again');
      return { name, healthy: true, ...(typeof detail === 'string' ? { detail } : {}) };
    } catch (error) {
      if (!failing.has(name)) logger.warn({ err: error, check: name }, 'health check failed');
      failing.add(name);
      return { name, healthy: false, detail: describe(error) };
    }
  };
};

type Warning = NonNullable<HealthReport['warnings']>[number];

const readWarning = async (name: string, warn: () => Promise<string | null>): Promise<Warning[]> => {
  const detail = await withTimeout(warn(), CHECK_TIMEOUT_MS, () =>
    transient('HEALTH.TIMEOUT', `${name} did not answer within ${CHECK_TIMEOUT_MS} ms`),
  ).catch(() => null);
  return detail === null ? [] : [{ name, detail }];
};

export const createHealthRegistry = (
  identity: ServiceIdentity,
  clock: Clock,
  logger: Logger,
): HealthRegistry => {
  const checks = new Map<string, HealthCheck>();
  const facts = new Map<string, () => JsonValue | Promise<JsonValue>>();
  const warnings = new Map<string, () => Promise<string | null>>();
  const runCheck = createChecker(logger);
  let running: Promise<HealthReport> | undefined;

  const runChecks = async (): Promise<HealthReport> => {
    const [checked, warned] = await Promise.all([
      Promise.all([...checks].map(([name, check]) => runCheck(name, check))),
      Promise.all([...warnings].map(([name, warn]) => readWarning(name, warn))),
    ]);
    const known = await Promise.all([...facts].map(async ([name, fact]) => [name, await fact()] as const));
    return {
      service: identity.service,
      healthy: checked.every(({ healthy }) => healthy),
      pid: identity.pid,
      uptimeMs: clock.now() - identity.startedAt,
      version: identity.version,
      checks: checked,
      ...(warned.flat().length > 0 ? { warnings: warned.flat() } : {}),
      facts: Object.fromEntries(known) as HealthReport['facts'],
    };
  };

  return {
    addCheck: (name, check) => void checks.set(name, check),
    addWarning: (name, warn) => void warnings.set(name, warn),
    addFact: (name, fact) => void facts.set(name, fact),
    report: () => (running ??= runChecks().finally(() => (running = undefined))),
  };
};
