export {
  ALL_COMPLETE,
  RUN_KEY_INPUT,
  assertCommandsHold,
  checkCommands,
  countEnds,
  formatEnds,
} from './check-commands.js';
export type { AllowedEnds, LoggedFact, Verdict } from './check-commands.js';
export {
  checkFigure,
  measureContention,
  noiseAllowance,
  percentile,
  report,
  summarizeRatios,
} from './figures.js';
export type { Figure, RatioSummary } from './figures.js';
export { growLog } from './grow-log.js';
export type { GrowLog } from './grow-log.js';
export { runToEnd } from './run-to-end.js';
export type { EndedRun, RunCommand } from './run-to-end.js';
export { createSeededRandom } from './seeded-random.js';
export type { SeededRandom } from './seeded-random.js';
export { Counterexample, createReconnectingClient, sendTurn, turnEndOf } from './send-turn.js';
export type { ReconnectingClient, SendOptions, SentTurn, TurnCommand } from './send-turn.js';
export { startLoad } from './start-load.js';
export type { Load, LoadOptions, TimedTurn } from './start-load.js';
