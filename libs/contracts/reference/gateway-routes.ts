import { z } from 'zod';
import { EventsQuery } from '../gateway/index.js';
import { HealthReport } from '../messaging/index.js';
import { EVENT, STATUS } from './examples.js';
import { defineRoute } from './http-route.js';
import { StatusView } from './status-view.js';

const NextCursor = z
  .string()
  .nullable()
  .describe('Pass it as `cursor` for the next page; null on the last page.');

/** An event of the log, as `GET /api/v1/events` returns it. */
export const EventView = z.object({
  position: z.int().positive().describe('Position in the log. Positions have no gaps.'),
  category: z.string(),
  streamId: z.string(),
  streamVersion: z.int().positive().describe('Position within the event stream, from 1.'),
  eventId: z.uuid(),
  type: z.string(),
  schemaVersion: z.int().positive(),
  severity: z.enum(['info', 'warning', 'error']),
  data: z.json(),
  metadata: z.json().describe('Origin of the event: correlation id, causation id, trace context, service.'),
  recordedAt: z.iso.datetime(),
  hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .describe('SHA-256 of the event and the hash before it in its stream, hex.'),
  withheld: z
    .string()
    .optional()
    .describe(
      'Why `data` is not complete: the permission that the caller lacks for all of it, or `deleted` for texts of deleted messages.',
    ),
});

/** Setting of the effective configuration, as `GET /api/v1/config` returns it. */
export const SettingView = z.object({
  key: z.string().describe('Key as in the file. An entry of a list is named, as in `agents[main].model`.'),
  value: z
    .union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()])
    .describe('Value in the unit of the file; null for none. Of a secret only `set` or `not set`.'),
  origin: z.enum(['default', 'file', 'environment']).describe('Source of the value.'),
  isSecret: z.boolean().describe('True if the value is hidden.'),
});

const Page = (media = 'text/html') => ({ schema: z.string(), media });

/** The event log, health, metrics and the reference itself. */
export const GATEWAY_ROUTES = {
  readEvents: defineRoute({
    method: 'get',
    path: '/api/v1/events',
    access: 'events:read',
    tag: 'Log',
    summary: 'Read the event log',
    description:
      'Returns events of the workspace, oldest first by default. Filters combine with AND. A page holds 100 events by default and ' +
      '1,000 at most. The data of an event needs the right of its category too, such as `sessions:read`: else `data` is empty and ' +
      '`withheld` names the right. Continue with `cursor`; a cursor from before a restore of the log is refused with 409.',
    query: EventsQuery,
    reply: {
      schema: z.object({
        events: z.array(EventView),
        nextCursor: NextCursor,
        position: z.int().nonnegative().describe('Position of the log as of which the page was read.'),
        head: z.int().nonnegative().describe('Position of the newest event of the log.'),
        searchedTo: z
          .int()
          .nonnegative()
          .describe(
            'Position up to which the log was searched for the page, with `order=desc` down to which. A search ' +
              'of a text ends after a second or 64 MiB: `nextCursor` then continues it, also without an event.',
          ),
      }),
    },
    example: {
      query: { severity: 'error', agent: 'support', since: '2026-11-22T00:00:00Z', limit: 50 },
      reply: {
        events: [EVENT],
        nextCursor: 'cDEwMjRlMQ',
        position: 184_203,
        head: 184_203,
        searchedTo: 184_203,
      },
    },
    problems: {
      400: 'a filter or the cursor is invalid; `detail` names it',
      409: 'the log was restored since the cursor was issued (`GATEWAY.EPOCH_CHANGED`); start without a cursor',
    },
  }),
  health: defineRoute({
    method: 'get',
    path: '/api/v1/health',
    access: 'status:read',
    tag: 'Operations',
    summary: 'Get the status of the installation',
    description:
      'Returns the health of all services and engines, the provider in use, the plug-ins and the number of sessions. ' +
      'The status is 200 even if a service is down; `status` is then `degraded`. Operators of `default` also see the ' +
      'processes, checks and facts of each service; others see whether it works.',
    reply: { schema: StatusView },
    example: { reply: STATUS },
  }),
  readConfig: defineRoute({
    method: 'get',
    path: '/api/v1/config',
    access: 'operations:write',
    tag: 'Operations',
    summary: 'Get the effective configuration',
    description:
      'Returns every setting of the running gateway with its origin: the shared ones, and the agents, plug-ins, bindings ' +
      'and limits of the caller’s workspace. Texts are shown only if the schema of the configuration permits it. ' +
      'Any other one is `set` or `not set`. It is for the roles `operator` and `admin`, and not for agents.',
    reply: { schema: z.object({ settings: z.array(SettingView) }) },
    example: {
      reply: {
        settings: [
          { key: 'gateway.port', value: 7_400, origin: 'default', isSecret: false },
          { key: 'gateway.token', value: 'set', origin: 'environment', isSecret: true },
          { key: 'agents[main].tools', value: ['calculator'], origin: 'file', isSecret: false },
        ],
      },
    },
  }),
  alive: defineRoute({
    method: 'get',
    path: '/healthz',
    access: 'open',
    tag: 'Operations',
    summary: 'Liveness probe',
    description: 'Returns 200 while the process runs. It checks no engine and needs no token.',
    reply: { schema: z.object({ status: z.literal('alive'), service: z.string(), version: z.string() }) },
    example: { reply: { status: 'alive', service: 'gateway', version: '0.1.0' } },
    everywhere: true,
  }),
  ready: defineRoute({
    method: 'get',
    path: '/readyz',
    access: 'open',
    tag: 'Operations',
    summary: 'Readiness probe',
    description:
      'Checks every engine that the gateway needs, now. Each check takes at most one second. With agents in the state ' +
      '`error` the status is `degraded`, with 200, because requests are served.',
    reply: {
      schema: z.object({
        status: z.enum(['ready', 'degraded']),
        service: z.string(),
        checks: HealthReport.shape.checks,
        warnings: HealthReport.shape.warnings,
      }),
    },
    example: {
      reply: { status: 'ready', service: 'gateway', checks: [{ name: 'postgres', healthy: true }] },
    },
    problems: { 503: 'an engine is unreachable; `detail` names it' },
    everywhere: true,
  }),
  metrics: defineRoute({
    method: 'get',
    path: '/metrics',
    access: 'status:read',
    tag: 'Operations',
    summary: 'Prometheus metrics',
    description:
      'Returns the metrics of this gateway process in the Prometheus text format. They count all workspaces, so that only ' +
      'operators and admins of the workspace `default` read them.',
    isForOperators: true,
    problems: { 403: 'the caller is no operator of the workspace `default`' },
    reply: { schema: z.string(), media: 'text/plain' },
    example: {},
    everywhere: true,
  }),
  openApi: defineRoute({
    method: 'get',
    path: '/openapi.json',
    access: 'authenticated',
    tag: 'Reference',
    summary: 'OpenAPI document',
    description: 'Returns this HTTP reference as an OpenAPI 3.1 document.',
    reply: { schema: z.json() },
    example: {},
  }),
  asyncApi: defineRoute({
    method: 'get',
    path: '/asyncapi.json',
    access: 'authenticated',
    tag: 'Reference',
    summary: 'AsyncAPI document',
    description: 'Returns the reference of the WebSocket `/ws` as an AsyncAPI 3 document.',
    reply: { schema: z.json() },
    example: {},
  }),
  docs: defineRoute({
    method: 'get',
    path: '/docs',
    access: 'authenticated',
    tag: 'Reference',
    summary: 'API reference as a web page',
    description: 'Returns the page that shows both documents, with search, examples and test requests.',
    reply: Page(),
    example: {},
  }),
  docsScript: defineRoute({
    method: 'get',
    path: '/docs/reference.js',
    access: 'authenticated',
    tag: 'Reference',
    summary: 'Script of the reference page',
    description: 'Returns the script that starts the reference page.',
    reply: Page('text/javascript'),
    example: {},
  }),
  docsBundle: defineRoute({
    method: 'get',
    path: '/docs/scalar.js',
    access: 'authenticated',
    tag: 'Reference',
    summary: 'Renderer of the reference page',
    description:
      'Returns the Scalar API reference (MIT), about 4 MB, compressed where the browser accepts it.',
    reply: Page('text/javascript'),
    example: {},
  }),
} as const;
