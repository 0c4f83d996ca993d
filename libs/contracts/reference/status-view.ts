import { z } from 'zod';
import { HealthReport } from '../messaging/index.js';

const UnhealthySince = z.iso
  .datetime()
  .optional()
  .describe('Time since which this gateway has seen it unhealthy; with `healthy` false only.');

/** Result of `status` and `GET /api/v1/health`. */
export const StatusView = z.object({
  status: z
    .enum(['ok', 'degraded'])
    .describe('`degraded` if a service is unhealthy, or an agent of the workspace is in the state `error`.'),
  version: z.string(),
  uptime: z.int().nonnegative().describe('Time since this gateway started, seconds.'),
  provider: z
    .object({ name: z.string(), kind: z.string(), model: z.string() })
    .describe('Provider and model of the default agent.'),
  services: z
    .record(
      z.string(),
      HealthReport.partial().extend({
        healthy: z.boolean(),
        error: z.string().optional(),
        since: UnhealthySince,
      }),
    )
    .describe('Health report of each service. `error` if the service did not respond.'),
  engines: z
    .record(
      z.string(),
      z.object({ healthy: z.boolean(), detail: z.string().optional(), since: UnhealthySince }),
    )
    .describe('Health of PostgreSQL, NATS and Temporal, as the services see them.'),
  agentsInError: z
    .array(z.object({ agentId: z.string(), code: z.string(), retryAt: z.string() }))
    .nullable()
    .describe('Agents of the workspace whose turns wait after failures, 100 at most; null if unknown.'),
  plugins: z.array(z.json()).nullable().describe('Configured plug-ins; null if the sandbox did not respond.'),
  sessions: z.int().nonnegative().nullable().describe('Number of sessions so far; null if unknown.'),
  stale: z
    .array(z.enum(['plugins', 'sessions']))
    .describe('Fields that come from the cache, because an engine or a service is down.'),
  features: z.record(z.string(), z.boolean()),
  temporalUi: z.string().nullable().describe('URL of Temporal’s web interface; null if there is none.'),
});
