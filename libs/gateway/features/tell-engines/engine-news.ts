import type { EngineStatusChange } from '@antiphon/contracts/gateway';
import type { HealthReport } from '@antiphon/contracts/messaging';

/** Engines that do not answer, with what clients were told of them. */
export interface EngineState {
  /** How often in a row each engine has failed its check. */
  readonly failing: Readonly<Record<string, number>>;
  /** What clients were told last; null while all is well. */
  readonly told: EngineStatusChange | null;
}

export const ALL_WELL: EngineState = { failing: {}, told: null };

/** Checks in a row that must fail before clients are told: one that was late on a busy machine is no news. */
const ROUNDS = 2;

const REFUSED =
  'New messages and everything else that writes or spends are refused with -32053 (503) until it is back; ' +
  'what was accepted goes on then. What only reads is answered from memory where it can be, marked stale.';

const degraded = (engines: readonly string[], since: string): EngineStatusChange => ({
  type: 'gateway.degraded',
  engines: [...engines],
  message: `${engines.join(' and ')} cannot be reached. ${REFUSED}`,
  since,
});

const recovered = (engines: readonly string[], since: string): EngineStatusChange => ({
  type: 'gateway.recovered',
  engines: [...engines],
  message: `${engines.join(' and ')} can be reached again: messages are accepted.`,
  since,
});

/**
 * What a report of the gateway's own checks means for its clients.
 * `now`: ISO time. `news` is null where there is none; what is told names every engine that is gone, not only the last one.
 */
export const judgeEngines = (
  { failing, told }: EngineState,
  checks: HealthReport['checks'],
  now: string,
): { state: EngineState; news: EngineStatusChange | null } => {
  const counted = Object.fromEntries(
    checks.flatMap(({ name, healthy }) => (healthy ? [] : [[name, (failing[name] ?? 0) + 1] as const])),
  );
  const gone = Object.keys(counted)
    .filter((name) => (counted[name] ?? 0) >= ROUNDS)
    .sort();
  const before = told?.engines ?? [];
  if (gone.join() === before.join()) return { state: { failing: counted, told }, news: null };
  if (gone.length > 0) {
    const news = degraded(gone, told?.since ?? now);
    return { state: { failing: counted, told: news }, news };
  }
  return { state: { failing: counted, told: null }, news: recovered(before, now) };
};
