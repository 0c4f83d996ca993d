export { assembleFrames, standing, textOf } from './assemble-frames.js';
export { followSession } from './follow-session.js';
export type { Cut, FollowedSession, FollowOptions } from './follow-session.js';
export { connectClient } from './socket-client.js';
export type { FrameStream, Incoming, SocketClient, StreamedFrame } from './socket-client.js';
