import { AGENT_ROUTES } from './agent-routes.js';
import { APPROVAL_ROUTES } from './approval-routes.js';
import { AUDIT_ROUTES } from './audit-routes.js';
import { BUDGET_ROUTES } from './budget-routes.js';
import { CHANNEL_ROUTES } from './channel-routes.js';
import { CHAT_BRANCH_ROUTES } from './chat-branch-routes.js';
import { CHAT_ROUTES } from './chat-routes.js';
import { CONTEXT_ROUTES } from './context-routes.js';
import { DASHBOARD_ROUTES } from './dashboard-routes.js';
import { FILE_ROUTES } from './file-routes.js';
import { GATEWAY_ROUTES } from './gateway-routes.js';
import type { HttpRoute } from './http-route.js';
import { CREDENTIAL_ROUTES, KEY_ROUTES, SECRET_ROUTES, WORKSPACE_ROUTES } from './identity-routes.js';
import { MCP_ROUTES } from './mcp-routes.js';
import { MEMORY_ROUTES } from './memory-routes.js';
import { MESSAGE_ROUTES } from './message-routes.js';
import { SEARCH_ROUTES } from './search-routes.js';
import { SESSION_ROUTES } from './session-routes.js';
import { PLAN_ROUTES } from './plan-routes.js';
import { PROVIDER_ROUTES } from './provider-routes.js';
import { ROUTE_COSTS, type RequestCost } from './request-costs.js';
import { LOG_ROUTES } from './log-routes.js';
import { RATE_ROUTES } from './rate-routes.js';
import { TASK_ROUTES } from './task-routes.js';
import { PLUGIN_ROUTES } from './plugin-routes.js';
import { TOOL_ROUTES } from './tool-routes.js';
import { RUN_ROUTES, WORKFLOW_ROUTES } from './workflow-routes.js';

export { AGENT_ROUTES } from './agent-routes.js';
export { APPROVAL_ROUTES } from './approval-routes.js';
export { AUDIT_ROUTES, RecordedAudit } from './audit-routes.js';
export { BUDGET_ROUTES } from './budget-routes.js';
export { CONTENT_RIGHTS, rightOfEvent, VIRTUAL_FILE_KINDS } from './content-rights.js';
export { CHANNEL_ROUTES } from './channel-routes.js';
export { CHAT_BRANCH_ROUTES } from './chat-branch-routes.js';
export { CHAT_ROUTES } from './chat-routes.js';
export { CONTEXT_ROUTES } from './context-routes.js';
export { DASHBOARD_ROUTES, Identity } from './dashboard-routes.js';
export { FILE_ROUTES } from './file-routes.js';
export { EventView, GATEWAY_ROUTES, SettingView } from './gateway-routes.js';
export { StatusView } from './status-view.js';
export { ROUTE_TAGS, UPLOAD_MEDIA, defineRoute, routerPath } from './http-route.js';
export type { HttpRoute, RouteInput, Upload } from './http-route.js';
export { CREDENTIAL_ROUTES, KEY_ROUTES, SECRET_ROUTES, WORKSPACE_ROUTES } from './identity-routes.js';
export { MCP_ROUTES } from './mcp-routes.js';
export { MEMORY_ROUTES } from './memory-routes.js';
export { MESSAGE_ROUTES } from './message-routes.js';
export { PLAN_ROUTES } from './plan-routes.js';
export { PROVIDER_ROUTES } from './provider-routes.js';
export { LOG_ROUTES, RecordedBackup } from './log-routes.js';
export { RATE_ROUTES } from './rate-routes.js';
export { METHOD_COSTS, ROUTE_COSTS, isHeavy } from './request-costs.js';
export type { RequestCost } from './request-costs.js';
export { SEARCH_ROUTES, SearchPage, SearchResult } from './search-routes.js';
export { SESSION_ROUTES, SessionView } from './session-routes.js';
export { METHODS, SOCKET_METHODS, findMethod } from './socket-methods.js';
export type { SocketMethod, SocketMethodName, SocketMethodTable } from './socket-methods.js';
export { EVENT_FRAMES, STREAM_FRAMES } from './stream-frames.js';
export type { StreamFrameData, StreamFrameKind } from './stream-frames.js';
export { TASK_ROUTES } from './task-routes.js';
export { PLUGIN_ROUTES } from './plugin-routes.js';
export { TOOL_ROUTES, ToolPage } from './tool-routes.js';
export { RUN_ROUTES, WORKFLOW_ROUTES } from './workflow-routes.js';

/** All HTTP routes of the gateway, by the part of the API that they belong to. */
export const ROUTE_GROUPS = [
  AGENT_ROUTES,
  TASK_ROUTES,
  PLAN_ROUTES,
  MEMORY_ROUTES,
  MESSAGE_ROUTES,
  BUDGET_ROUTES,
  PLUGIN_ROUTES,
  TOOL_ROUTES,
  MCP_ROUTES,
  GATEWAY_ROUTES,
  AUDIT_ROUTES,
  LOG_ROUTES,
  RATE_ROUTES,
  SEARCH_ROUTES,
  SESSION_ROUTES,
  CONTEXT_ROUTES,
  CHAT_ROUTES,
  CHAT_BRANCH_ROUTES,
  FILE_ROUTES,
  APPROVAL_ROUTES,
  WORKFLOW_ROUTES,
  RUN_ROUTES,
  KEY_ROUTES,
  WORKSPACE_ROUTES,
  PROVIDER_ROUTES,
  CREDENTIAL_ROUTES,
  SECRET_ROUTES,
  CHANNEL_ROUTES,
  DASHBOARD_ROUTES,
] as const;

/** All HTTP routes of the gateway. */
export const HTTP_ROUTES: readonly HttpRoute[] = ROUTE_GROUPS.flatMap((routes) =>
  Object.values<HttpRoute>(routes),
);

type Merge<G> = (G extends unknown ? (routes: G) => void : never) extends (routes: infer R) => void
  ? R
  : never;

const COST_OF: ReadonlyMap<HttpRoute, RequestCost> = new Map(
  ROUTE_GROUPS.flatMap((routes) => Object.entries<HttpRoute>(routes)).map(([name, route]) => [
    route,
    ROUTE_COSTS[name as keyof RouteTable],
  ]),
);

/** Returns the cost of a route. One that is not in the reference is heavy. */
export const costOf = (route: HttpRoute): RequestCost => COST_OF.get(route) ?? 'heavy';

/** Type of all HTTP routes by name. Names are unique over all groups. */
export type RouteTable = Merge<(typeof ROUTE_GROUPS)[number]>;
