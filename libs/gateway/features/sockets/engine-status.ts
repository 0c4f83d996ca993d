import type { EngineStatusChange } from '@antiphon/contracts/gateway';
import type { HealthReport } from '@antiphon/contracts/messaging';

/** Failed checks of the engines, and the last status sent to clients. */
export interface EngineState {
  /** Number of consecutive failed checks of each engine. */
  readonly failing: Readonly<Record<string, number>>;
  /** Last `gateway.degraded` sent; null while all engines are reachable. */
  readonly announced: EngineStatusChange | null;
}

export const ALL_HEALTHY: EngineState = { failing: {}, announced: null };

/**
 * Consecutive failed checks before clients are notified. One late check on a busy machine is
 * ignored.
 */
const ROUNDS = 2;

const REFUSED =
  'New messages and everything else that writes or spends are refused with -32053 (503) until it is back; ' +
  'what was accepted continues then. What only reads is answered from memory where it can be, marked stale.';

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
 * Returns the next state after a round of checks at `now` (ISO time), and the change to send to
 * clients or null. `gateway.degraded` names every unreachable engine.
 */
export const judgeEngines = (
  { failing, announced }: EngineState,
  checks: HealthReport['checks'],
  now: string,
): { state: EngineState; change: EngineStatusChange | null } => {
  const counted = Object.fromEntries(
    checks.flatMap(({ name, healthy }) => (healthy ? [] : [[name, (failing[name] ?? 0) + 1] as const])),
  );
  const unreachable = Object.keys(counted)
    .filter((name) => (counted[name] ?? 0) >= ROUNDS)
    .sort();
  const before = announced?.engines ?? [];
  if (unreachable.join() === before.join()) return { state: { failing: counted, announced }, change: null };
  if (unreachable.length > 0) {
    const change = degraded(unreachable, announced?.since ?? now);
    return { state: { failing: counted, announced: change }, change };
  }
  return { state: { failing: counted, announced: null }, change: recovered(before, now) };
};
