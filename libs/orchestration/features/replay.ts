// Replays recorded sessions without the service: no provider's SDK, no Nest, no event store.
export { replayRecord } from './maintenance/replay-record.js';
export type { Divergence, ReplayReport, ReplaySide } from './maintenance/replay-record.js';
