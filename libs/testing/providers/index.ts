export { startHttpProvider } from './http-provider.js';
export type { HttpProvider, SeenRequest } from './http-provider.js';
export { startMockModel } from './mock-model.js';
export type { BeforePiece, MockModel, MockRequest, MockScript } from './mock-model.js';
export { closedPort, startRawProvider } from './raw-provider.js';
export type { RawProvider } from './raw-provider.js';
export { anthropicMessage, anthropicStream, openAiCompletion, openAiStream } from './wire-formats.js';
export type { MockReply } from './wire-formats.js';
export { anthropicFaults, openAiFaults } from './message-faults.js';
