export { HOSTILE_TIMEOUT_MS, hostileCount, sampleHostileTexts } from './hostile-texts.js';
export type { HostileText } from './hostile-texts.js';
export { MOST_HOLD_MS, findHolds, holdOf } from './loop-hold.js';
export type { LoopReader } from './loop-hold.js';
