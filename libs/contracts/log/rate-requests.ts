import { z } from 'zod';
import { defineRequest } from '../messaging/index.js';
import { asOfReply, asOfRequest } from './as-of.js';
import { WorkspaceId } from './stored-event.js';

/** Times that a read of rates covers, in steps of so many seconds. */
export const RATE_SPANS = {
  '1h': { step: 60, steps: 60 },
  '24h': { step: 600, steps: 144 },
  '30d': { step: 14_400, steps: 180 },
} as const;
export const RateSpan = z.enum(['1h', '24h', '30d']);
export type RateSpan = z.infer<typeof RateSpan>;

const count = z.int().nonnegative();

/** Counts of the events of a workspace in a step. */
export const RateBucket = z.object({
  at: z.iso.datetime().describe('Beginning of the step, by the times at which events were recorded.'),
  events: count,
  turns: count.describe('Turns that were requested.'),
  endedTurns: count,
  tasks: count.describe('Tasks that were queued.'),
  endedTasks: count,
  failures: count.describe('Failures of turns, tasks, nodes, runs and agents.'),
  modelCalls: count,
  toolCalls: count,
  inputTokens: count.describe('Tokens of the model calls that were settled, as are output tokens.'),
  outputTokens: count,
  microUsd: count.nullable().describe('Charges of ended model calls; null without `budgets:read`.'),
  openTurns: z.int().describe('Turns that had not ended at the end of the step.'),
  openTasks: z.int().describe('Tasks that had not ended at the end of the step.'),
});
export type RateBucket = z.infer<typeof RateBucket>;

/** Counts of a workspace over a time. */
export const LogRates = z.object({
  span: RateSpan,
  step: z.int().positive().describe('Seconds of a step.'),
  since: z.iso.datetime().describe('Beginning of the first step.'),
  until: z.iso.datetime().describe('Time of the read; with `at`, the time of the last event up to it.'),
  buckets: z.array(RateBucket).describe('Oldest first. A step without an event has none.'),
  openBefore: z
    .object({ turns: z.int(), tasks: z.int() })
    .describe('Turns and tasks that were open at `since`.'),
  ...asOfReply,
});
export type LogRates = z.infer<typeof LogRates>;

/** Returns the counts of a workspace. As of a position, a minute counts once it had ended. */
export const readLogRates = defineRequest({
  subject: 'cmd.memory.log.rates',
  request: z.strictObject({ workspace: WorkspaceId, span: RateSpan, ...asOfRequest }),
  reply: LogRates,
  timeoutMs: 10_000,
});
