import { z } from 'zod';
import { At } from '../gateway/index.js';
import { LogRates, RateSpan } from '../log/index.js';
import { defineRoute } from './http-route.js';

const RATES = {
  ...{ span: '1h' as const, step: 60, since: '2026-11-22T09:01:00.000Z', until: '2026-11-22T10:00:12.345Z' },
  buckets: [
    {
      ...{ at: '2026-11-22T09:58:00.000Z', events: 42, turns: 3, endedTurns: 2, tasks: 1, endedTasks: 1 },
      ...{ failures: 0, modelCalls: 4, toolCalls: 2, inputTokens: 5_120, outputTokens: 860 },
      ...{ microUsd: 28_260, openTurns: 1, openTasks: 0 },
    },
  ],
  openBefore: { turns: 0, tasks: 0 },
};

/** Route of the rates of a workspace. */
export const RATE_ROUTES = {
  readRates: defineRoute({
    method: 'get',
    path: '/api/v1/rates',
    access: 'events:read',
    tag: 'Log',
    summary: 'Read rates',
    description:
      'Returns how many events, turns, failures, calls, tokens and micro-dollars the workspace had in each step of a time, and ' +
      'its open turns and tasks. They are facts, added up as the log grows: minutes are kept for a day and hours for 30 days, ' +
      'so a past older than a day is in hours. As of a position, a minute counts once it had ended.',
    query: z.strictObject({ span: RateSpan.default('1h'), at: At }),
    reply: { schema: LogRates },
    example: { query: { span: '1h' }, reply: RATES },
    problems: { 403: 'the caller may not do this, or is an agent' },
  }),
} as const;
