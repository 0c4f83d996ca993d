export * from './agent-bodies.js';
export * from './agent-frames.js';
export * from './at.js';
export * from './chat-bodies.js';
export * from './file-bodies.js';
export * from './http-bodies.js';
export * from './socket-params.js';
export * from './tool-socket.js';
