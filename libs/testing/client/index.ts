export { assembleFrames, standing, textOf } from './assemble-frames.js';
export { connectClient } from './socket-client.js';
export type { FrameStream, Incoming, SocketClient, StreamedFrame } from './socket-client.js';
