import { SECONDS, defineHistogram } from './metrics.js';

/**
 * Stages of a turn, each measured by one process on its monotonic clock. Those of a service follow
 * one another, except `context_received` and `budget_reserved`, which run next to the acceptance.
 */
export const TURN_STAGES = {
  gateway: ['request_sent', 'turn_accepted', 'first_text_sent', 'done_sent', 'frame_delivered'],
  agent: [
    'session_resolved',
    'append_sent',
    'turn_committed',
    'context_received',
    'budget_reserved',
    'reservation_awaited',
    'call_sent',
    'first_text_received',
    'answer_received',
    'answer_committed',
  ],
} as const;

export type TurnStage = (typeof TURN_STAGES)[keyof typeof TURN_STAGES][number];

const stageSeconds = defineHistogram(
  'antiphon_turn_stage_seconds',
  'Stages of turns, each from the end of the stage before it in the same process',
  { buckets: [0.0001, 0.0002, 0.0005, 0.001, ...SECONDS] },
);

/** Records the stage that began at `startedAt` (monotonic, ms) and ends now. Returns now. */
export const recordTurnStage = (stage: TurnStage, startedAt: number): number => {
  const now = performance.now();
  stageSeconds.record((now - startedAt) / 1_000, { stage });
  return now;
};
