import {
  BREAKER_FAILURES,
  BREAKER_OPEN_MS,
  BREAKER_PROBE_MS,
  NO_OPEN_CIRCUITS,
  breakerView,
} from '@antiphon/agent-domain';
import type { FailureClass, OpenCircuit, OpenCircuits } from '@antiphon/agent-domain';
import { BREAKER_NOTIFICATION_SUBJECT } from '@antiphon/contracts/agent';
import type { Clock, Ids } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { untilAnswered, waitFor } from '../drive-session/stop.js';
import type { BreakerKey, BreakerRow, BreakerStore } from './breaker-store.js';
import { createKnownBreakers } from './known-breakers.js';

/** Leave to call a provider; its outcome is told with it. */
export interface Admission extends BreakerKey {
  readonly admitted: true;
  /** Of the one trial call after a pause. */
  readonly probeId: string | null;
}
export interface Refusal {
  readonly admitted: false;
  readonly message: string;
}

export interface BreakerChange extends BreakerKey {
  readonly to: 'paused' | 'asked';
}

/** The circuit breakers of all providers, shared between agent processes. */
export interface ProviderBreakers {
  /** What decisions about a turn should know, from memory. */
  pausesOf(workspace: string): OpenCircuits;
  /**
   * Asked before each call; costs nothing while the provider is not paused. Waits for a trial call that is on its way.
   * Throws `Stopped` when the signal says so.
   */
  admit(key: BreakerKey, signal: AbortSignal): Promise<Admission | Refusal>;
  /** A call was answered. Writes only where failures were counted, and nobody waits for it. */
  succeeded(admission: Admission): void;
  /** A call failed. Never throws: what could not be counted is logged. */
  failed(admission: Admission, judgement: FailureClass): Promise<void>;
  /** Reads what other processes have found out. */
  refresh(): Promise<void>;
  all(): readonly (OpenCircuit & { readonly provider: string; readonly failures: number })[];
}

export interface BreakerOptions {
  readonly store: BreakerStore;
  readonly nats: NatsLink;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Called in the process that made the change, once for each. */
  readonly onChange?: (change: BreakerChange) => void;
}

/** Between two looks at a trial call of another process, ms; its hint usually comes first. */
const PROBE_LOOK_MS = 100;

const isoOf = (milliseconds: number): string => new Date(milliseconds).toISOString();

const refusal = ({ provider }: BreakerKey, openUntil: number): Refusal => ({
  admitted: false,
  message: `provider ${provider} is paused until ${isoOf(openUntil)}, after ${BREAKER_FAILURES} failures in a row`,
});

const pauseOf = (row: BreakerRow, now: number): OpenCircuit | null => {
  const view = breakerView(row, now);
  if (view !== 'open' && view !== 'probing') return null;
  return { state: view, until: isoOf((view === 'open' ? row.openUntil : row.probeUntil) ?? now) };
};

/** Says what changed: to the log, to the other processes, and to whoever counts. */
const createTeller = ({ nats, logger, onChange }: BreakerOptions) => {
  const tell = ({ workspace, provider }: BreakerKey, to: BreakerChange['to']): void => {
    onChange?.({ workspace, provider, to });
    // A hint may be lost: every process looks once a second.
    if (nats.isConnected()) nats.connection.publish(BREAKER_NOTIFICATION_SUBJECT);
  };
  return {
    paused: (row: BreakerRow): void => {
      const { workspace, provider, failures } = row;
      const until = isoOf(row.openUntil ?? 0);
      logger.warn(
        { workspace, provider, failures, until },
        'a provider failed too often in a row and is paused',
      );
      tell(row, 'paused');
    },
    asked: ({ workspace, provider }: BreakerKey): void => {
      logger.info({ workspace, provider }, 'a provider answers again and is no longer paused');
      tell({ workspace, provider }, 'asked');
    },
  };
};

export const createProviderBreakers = (options: BreakerOptions): ProviderBreakers => {
  const { store, clock, ids, logger } = options;
  const known = createKnownBreakers();
  const teller = createTeller(options);
  /** When a provider last answered this process: failures before that do not count any more. */
  const answeredAt = new Map<string, number>();
  const idOf = ({ workspace, provider }: BreakerKey): string => `${workspace}\0${provider}`;

  const forget = async (key: BreakerKey, at: number, probeId: string | null): Promise<void> => {
    known.forget(key);
    if (await store.succeed(key, { at, probeId })) teller.asked(key);
  };
  const orLog = (work: Promise<void>, key: BreakerKey): Promise<void> =>
    work.catch((error: unknown) =>
      logger.warn(
        { err: error, provider: key.provider },
        'what a call says about its provider was not written',
      ),
    );
  const refresh = async (): Promise<void> => {
    await known.replace(() => store.all());
    for (const row of known.all()) {
      const at = answeredAt.get(idOf(row));
      if (row.openUntil === null && at !== undefined && at > row.failedAt) await forget(row, at, null);
    }
  };
  const claim = async (key: BreakerKey): Promise<Admission | null> => {
    const now = clock.now();
    const until = { until: now + BREAKER_PROBE_MS, pausedUntilAtMost: now + BREAKER_OPEN_MS };
    const probe = { id: ids.next(), now, ...until };
    const row = await store.claimProbe(key, probe);
    if (!row) return null;
    known.put(row);
    logger.info({ ...key }, 'a trial call is made to a provider whose pause is over');
    return { ...key, admitted: true, probeId: probe.id };
  };
  const admit = async (key: BreakerKey, signal: AbortSignal): Promise<Admission | Refusal> => {
    for (;;) {
      const row = known.get(key);
      const view = breakerView(row, clock.now());
      if (view === 'closed') return { ...key, admitted: true, probeId: null };
      if (view === 'open') return refusal(key, row?.openUntil ?? 0);
      const claimed = view === 'due' ? await untilAnswered(() => claim(key), signal, logger) : null;
      if (claimed) return claimed;
      if (view === 'probing') await waitFor(PROBE_LOOK_MS, signal);
      await untilAnswered(refresh, signal, logger);
    }
  };
  const count = async ({ probeId, workspace, provider }: Admission): Promise<void> => {
    const now = clock.now();
    const limit = { limit: BREAKER_FAILURES, pauseUntil: now + BREAKER_OPEN_MS };
    const row = await store.fail({ workspace, provider }, { now, probeId, ...limit });
    if (!row) return refresh();
    known.put(row);
    if (row.openUntil !== null) teller.paused(row);
  };

  return {
    pausesOf: (workspace) => {
      const rows = known.ofWorkspace(workspace);
      if (rows.length === 0) return NO_OPEN_CIRCUITS;
      const now = clock.now();
      return new Map(
        rows.flatMap((row) => {
          const pause = pauseOf(row, now);
          return pause ? [[row.provider, pause] as const] : [];
        }),
      );
    },
    admit,
    succeeded: ({ workspace, provider, probeId }) => {
      const key = { workspace, provider };
      const at = clock.now();
      answeredAt.set(idOf(key), at);
      const row = known.get(key);
      if (probeId !== null || row?.openUntil === null) void orLog(forget(key, at, probeId), key);
    },
    failed: async (admission, judgement) => {
      const { workspace, provider, probeId } = admission;
      const key = { workspace, provider };
      if (judgement === 'failed') return orLog(count(admission), key);
      if (probeId === null) return;
      if (judgement === 'alive') return orLog(forget(key, clock.now(), probeId), key);
      return orLog(store.giveUpProbe(key, probeId).then(refresh), key);
    },
    refresh,
    all: () => {
      const now = clock.now();
      return known.all().flatMap((row) => {
        const pause = pauseOf(row, now);
        return pause ? [{ ...pause, provider: row.provider, failures: row.failures }] : [];
      });
    },
  };
};
