import type { Cause } from '@antiphon/contracts/causes';
import {
  BREAKER_FAILURES,
  BREAKER_OPEN_MS,
  NO_OPEN_CIRCUITS,
  BREAKER_TRIAL_MS,
  circuitPhase,
} from '@antiphon/providers-domain';
import type { FailureClass, OpenCircuit, OpenCircuits } from '@antiphon/providers-domain';
import { BREAKER_NOTIFICATION_SUBJECT } from '@antiphon/contracts/agent';
import { isAppError, repeatEvery, retry, sleep } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { CircuitKey, CircuitRow, CircuitStore } from './circuit-breaker.store.js';

/** Permission for one call to a provider. The call's outcome is recorded with it. */
export interface Admission extends CircuitKey {
  readonly admitted: true;
  /** Set for the trial call of a half-open circuit. */
  readonly trialId: string | null;
}
export interface Refusal {
  readonly admitted: false;
  readonly cause: Cause;
}

export interface CircuitChange extends CircuitKey {
  readonly to: 'opened' | 'closed';
}

export interface CircuitBreakerDeps {
  readonly store: CircuitStore;
  readonly nats: NatsLink;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Called once for each change, in the process that made it. */
  readonly onChange?: (change: CircuitChange) => void;
}

/**
 * Interval between polls of another process's trial call, ms; its notification usually comes first.
 */
const TRIAL_POLL_MS = 100;
/** Interval between reads of the stored circuits, ms. */
const REFRESH_MS = 1_000;
const RETRY = { firstMs: 50, maxMs: 1_000 };

const idOf = ({ workspace, provider }: CircuitKey): string => `${workspace}\0${provider}`;
const isoOf = (milliseconds: number): string => new Date(milliseconds).toISOString();
const isTransient = (error: unknown): boolean => isAppError(error) && error.kind === 'transient';

const refuse = ({ provider }: CircuitKey, openUntil: number): Refusal => ({
  admitted: false,
  cause: { kind: 'circuit_open', provider, until: isoOf(openUntil), failures: BREAKER_FAILURES },
});

const toOpenCircuit = (row: CircuitRow, now: number): OpenCircuit | null => {
  const phase = circuitPhase(row, now);
  if (phase !== 'open' && phase !== 'probing') return null;
  return { state: phase, until: isoOf((phase === 'open' ? row.openUntil : row.trialUntil) ?? now) };
};

/**
 * Circuit breakers of all providers, shared between agent processes through the database. Each
 * process holds a cache of the rows, so that a call to a healthy provider costs no query.
 */
export class CircuitBreakers {
  private rows = new Map<string, CircuitRow>();
  /**
   * Number of local changes to the cache, so that a read that began before one does not undo it.
   */
  private cacheChanges = 0;
  /** Time of a provider's last response in this process. Failures before it no longer count. */
  private readonly succeededAt = new Map<string, number>();

  constructor(private readonly deps: CircuitBreakerDeps) {}

  /** Returns the open circuits of a workspace, from the cache. */
  openCircuitsOf(workspace: string): OpenCircuits {
    // Nearly always empty, and read for each decision about a turn.
    if (this.rows.size === 0) return NO_OPEN_CIRCUITS;
    const now = this.deps.clock.now();
    const open = new Map<string, OpenCircuit>();
    for (const row of this.rows.values()) {
      const circuit = row.workspace === workspace ? toOpenCircuit(row, now) : null;
      if (circuit) open.set(row.provider, circuit);
    }
    return open;
  }

  /** Lists the open circuits of all workspaces, from the cache. */
  openCircuits(): readonly (OpenCircuit & { readonly provider: string; readonly failures: number })[] {
    const now = this.deps.clock.now();
    return [...this.rows.values()].flatMap((row) => {
      const circuit = toOpenCircuit(row, now);
      return circuit ? [{ ...circuit, provider: row.provider, failures: row.failures }] : [];
    });
  }

  /**
   * Admits or refuses a call. Costs nothing while the circuit is closed. Claims the trial call of a
   * half-open circuit, and waits for the outcome of another process's trial call. Rejects with the
   * signal's reason on abort.
   */
  async admit(key: CircuitKey, signal: AbortSignal): Promise<Admission | Refusal> {
    for (;;) {
      const row = this.rows.get(idOf(key));
      const phase = circuitPhase(row, this.deps.clock.now());
      if (phase === 'closed') return { ...key, admitted: true, trialId: null };
      if (phase === 'open') return refuse(key, row?.openUntil ?? 0);
      const trial =
        phase === 'half-open' ? await this.retryTransient(() => this.claimTrial(key), signal) : null;
      if (trial) return trial;
      if (phase === 'probing') await sleep(TRIAL_POLL_MS, signal);
      await this.retryTransient(() => this.refresh(), signal);
    }
  }

  /**
   * Records that a call succeeded. Writes in the background, and only where failures were counted.
   */
  recordSuccess({ workspace, provider, trialId }: Admission): void {
    const key = { workspace, provider };
    const at = this.deps.clock.now();
    this.succeededAt.set(idOf(key), at);
    const row = this.rows.get(idOf(key));
    if (trialId !== null || row?.openUntil === null) void this.logFailure(this.forget(key, at, trialId), key);
  }

  /** Records that a call failed. Never rejects: a failed write is logged. */
  async recordFailure(admission: Admission, verdict: FailureClass): Promise<void> {
    const { workspace, provider, trialId } = admission;
    const key = { workspace, provider };
    if (verdict === 'failed') return this.logFailure(this.countFailure(admission), key);
    if (trialId === null) return;
    if (verdict === 'alive') return this.logFailure(this.forget(key, this.deps.clock.now(), trialId), key);
    const release = this.deps.store.releaseTrial(key, trialId).then(() => this.refresh());
    return this.logFailure(release, key);
  }

  /**
   * Refreshes the cache every second and at notifications from other processes, until the signal
   * aborts.
   */
  async follow(signal: AbortSignal): Promise<void> {
    const { nats, logger } = this.deps;
    let isFailing = false;
    const refresh = async (): Promise<void> => {
      try {
        await this.refresh();
        isFailing = false;
      } catch (error) {
        // Once an outage, not once a second.
        if (!isFailing) logger.warn({ err: error }, 'circuit breaker refresh failed');
        isFailing = true;
      }
    };
    const subscription = nats.connection.subscribe(BREAKER_NOTIFICATION_SUBJECT, {
      callback: () => void refresh(),
    });
    await repeatEvery(refresh, REFRESH_MS, signal);
    subscription.unsubscribe();
  }

  private async refresh(): Promise<void> {
    const before = this.cacheChanges;
    const rows = await this.deps.store.all();
    if (before === this.cacheChanges) this.rows = new Map(rows.map((row) => [idOf(row), row]));
    for (const row of this.rows.values()) {
      const at = this.succeededAt.get(idOf(row));
      // Another process counted failures that this one has seen end.
      if (row.openUntil === null && at !== undefined && at > row.failedAt) await this.forget(row, at, null);
    }
  }

  private async claimTrial(key: CircuitKey): Promise<Admission | null> {
    const { store, clock, ids, logger } = this.deps;
    const now = clock.now();
    const id = ids.next();
    const times = { now, until: now + BREAKER_TRIAL_MS, latestOpenUntil: now + BREAKER_OPEN_MS };
    const row = await store.claimTrial(key, { id, ...times });
    if (!row) return null;
    this.cache(row);
    logger.info({ ...key }, 'circuit breaker trial call started');
    return { ...key, admitted: true, trialId: id };
  }

  private async countFailure({ trialId, workspace, provider }: Admission): Promise<void> {
    const { store, clock, logger } = this.deps;
    const now = clock.now();
    const limits = { threshold: BREAKER_FAILURES, openUntil: now + BREAKER_OPEN_MS };
    const row = await store.fail({ workspace, provider }, { now, trialId, ...limits });
    if (!row) return this.refresh();
    this.cache(row);
    if (row.openUntil === null) return;
    const until = isoOf(row.openUntil);
    logger.warn({ workspace, provider, failures: row.failures, until }, 'circuit breaker opened');
    this.announce({ workspace, provider, to: 'opened' });
  }

  /**
   * Deletes a provider's failures before `at`. Closes the circuit when `trialId` is its trial call.
   */
  private async forget(key: CircuitKey, at: number, trialId: string | null): Promise<void> {
    const { workspace, provider } = key;
    this.cacheChanges += 1;
    this.rows.delete(idOf(key));
    if (!(await this.deps.store.succeed(key, { at, trialId }))) return;
    this.deps.logger.info({ workspace, provider }, 'circuit breaker closed');
    this.announce({ workspace, provider, to: 'closed' });
  }

  private cache(row: CircuitRow): void {
    this.cacheChanges += 1;
    this.rows.set(idOf(row), row);
  }

  private announce(change: CircuitChange): void {
    const { nats, onChange } = this.deps;
    onChange?.(change);
    // A lost notification costs the other processes a second.
    if (nats.isConnected()) nats.connection.publish(BREAKER_NOTIFICATION_SUBJECT);
  }

  /** Retries while the database is down: an admitted turn waits for it. */
  private retryTransient<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const onRetry = (err: unknown, attempt: number): void => {
      if (attempt === 1) this.deps.logger.warn({ err }, 'circuit breaker waits for database');
    };
    return retry(work, { ...RETRY, signal, isRetryable: isTransient, onRetry });
  }

  private logFailure(write: Promise<void>, { provider }: CircuitKey): Promise<void> {
    return write.catch((err: unknown) =>
      this.deps.logger.warn({ err, provider }, 'circuit breaker update failed'),
    );
  }
}
