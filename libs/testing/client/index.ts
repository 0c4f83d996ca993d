export { assembleFrames, effectiveFrames, textOf } from './frames.js';
export type { Incoming, StreamedFrame } from './frames.js';
export { followSession } from './follow-session.js';
export type { Cut, FollowedSession, FollowOptions } from './follow-session.js';
export { connectClient } from './socket-client.js';
export type { FrameStream, SocketClient } from './socket-client.js';
