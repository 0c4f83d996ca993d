export { connectClient, textOf } from './socket-client.js';
export type { FrameStream, Incoming, SocketClient, StreamedFrame } from './socket-client.js';
