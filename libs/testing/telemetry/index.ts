export { startOtlpReceiver, treeProblems } from './otlp-receiver.js';
export type { OtlpReceiver, ReceivedSpan } from './otlp-receiver.js';
