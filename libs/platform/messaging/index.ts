export { HandleRequest } from './handle-request.js';
export { onLogHint, publishLogHint } from './log-hint.js';
export { connectNats, inboxPrefix } from './nats-link.js';
export type { NatsLink, NatsLinkOptions } from './nats-link.js';
export { createRequestClient } from './request-client.js';
export type { RequestClient, RequestOptions } from './request-client.js';
export { RequestServer } from './request-server.js';
export type { RequestServerOptions } from './request-server.js';
