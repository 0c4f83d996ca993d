import { z } from 'zod';
import { AgentView } from '../agent/requests.js';
import { HealthReport } from '../messaging/index.js';
import { EventsQuery } from '../gateway/index.js';
import type { HttpRoute } from './http-route.js';
import { APPROVAL_ROUTES } from './approval-routes.js';
import { SESSION_ROUTES } from './session-routes.js';
import { WORKFLOW_ROUTES } from './workflow-routes.js';

/** An event of the log, as `GET /api/v1/events` answers it. */
export const EventView = z.object({
  position: z.int().positive(),
  category: z.string(),
  streamId: z.string(),
  streamVersion: z.int().positive(),
  eventId: z.uuid(),
  type: z.string(),
  schemaVersion: z.int().positive(),
  severity: z.enum(['info', 'warning', 'error']),
  data: z.json(),
  metadata: z.json(),
  recordedAt: z.iso.datetime(),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
});

/** What `status` and `GET /api/v1/health` answer. */
export const StatusView = z.object({
  status: z.enum(['ok', 'degraded']),
  version: z.string(),
  /** Seconds since this gateway started. */
  uptime: z.int().nonnegative(),
  provider: z.object({ name: z.string(), kind: z.string(), model: z.string() }),
  services: z.record(
    z.string(),
    HealthReport.partial().extend({ healthy: z.boolean(), error: z.string().optional() }),
  ),
  engines: z.record(z.string(), z.object({ healthy: z.boolean(), detail: z.string().optional() })),
  /** Null when the service that knows did not answer. */
  plugins: z.array(z.json()).nullable(),
  sessions: z.int().nonnegative().nullable(),
  /** What of this is only remembered, because an engine or a service is down. */
  stale: z.array(z.enum(['plugins', 'sessions'])),
  features: z.record(z.string(), z.boolean()),
  /** Where Temporal shows its workflows; null when nobody said. */
  temporalUi: z.string().nullable(),
});

const Html = { schema: z.string(), media: 'text/html' };

export const HTTP_ROUTES: readonly HttpRoute[] = [
  {
    method: 'get',
    path: '/healthz',
    summary: 'The process lives.',
    reply: { schema: z.object({ status: z.literal('alive'), service: z.string(), version: z.string() }) },
    open: true,
    everywhere: true,
  },
  {
    method: 'get',
    path: '/readyz',
    summary: 'Everything that the gateway needs works, each asked now.',
    reply: {
      schema: z.object({
        status: z.literal('ready'),
        service: z.string(),
        checks: HealthReport.shape.checks,
      }),
    },
    problems: { 503: 'something that it needs does not work; `detail` says what' },
    open: true,
    everywhere: true,
  },
  {
    method: 'get',
    path: '/api/v1/health',
    summary: 'Health of all services and engines, the provider in use, plug-ins, number of sessions.',
    reply: { schema: StatusView },
  },
  {
    method: 'get',
    path: '/api/v1/agents',
    summary: 'The configured agents.',
    reply: {
      schema: z.object({
        agents: z.array(AgentView),
        nextCursor: z.string().nullable(),
        stale: z.literal(true).optional(),
      }),
    },
  },
  {
    method: 'get',
    path: '/api/v1/agents/{id}',
    summary: 'One agent.',
    params: z.object({ id: z.string() }),
    reply: { schema: AgentView },
    problems: { 404: 'there is no agent with this id' },
  },
  {
    method: 'get',
    path: '/api/v1/events',
    summary: 'The log, oldest first, by type, stream, agent, severity and time.',
    query: EventsQuery,
    reply: { schema: z.object({ events: z.array(EventView), nextCursor: z.string().nullable() }) },
    problems: { 400: 'a filter or the cursor is not what it must be' },
  },
  ...SESSION_ROUTES,
  ...APPROVAL_ROUTES,
  ...WORKFLOW_ROUTES,
  {
    method: 'get',
    path: '/metrics',
    summary: "The gateway's metrics, as Prometheus reads them.",
    reply: { schema: z.string(), media: 'text/plain' },
    everywhere: true,
  },
  {
    method: 'get',
    path: '/openapi.json',
    summary: 'This reference as OpenAPI 3.1.',
    reply: { schema: z.json() },
  },
  {
    method: 'get',
    path: '/asyncapi.json',
    summary: 'The WebSocket door as AsyncAPI 3.',
    reply: { schema: z.json() },
  },
  { method: 'get', path: '/docs', summary: 'This reference as a page.', reply: Html },
];
