/** The one workspace that this version serves: string. */
export const WORKSPACE = Symbol('WORKSPACE');
/** () => Promise<status>: what `status` and `/api/v1/health` tell. */
export const STATUS = Symbol('STATUS');
/** TokenGate. */
export const TOKEN_GATE = Symbol('TOKEN_GATE');
/** FrameLog. */
export const FRAME_LOG = Symbol('FRAME_LOG');
/** SessionFeeds. */
export const SESSION_FEEDS = Symbol('SESSION_FEEDS');
/** MethodTable. */
export const METHODS = Symbol('METHODS');

/** Who asks over HTTP, until keys tell callers apart: the scope of an idempotency key. */
export const HTTP_CALLER = 'http:token';
