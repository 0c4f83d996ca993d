export { EventView, HTTP_ROUTES, StatusView } from './http-routes.js';
export type { HttpRoute } from './http-route.js';
export { SOCKET_METHODS, STREAM_FRAMES } from './socket-methods.js';
export type { SocketMethod } from './socket-methods.js';
