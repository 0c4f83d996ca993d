import { z } from 'zod';
import {
  MAX_TOOLS_OF_WORKER,
  MAX_WORKER_CONCURRENCY,
  RefusedTool,
  RegisteredTool,
  RemoteToolDeclaration,
} from '../sandbox/remote-tools.js';

/** Path of the socket on which programs serve tools. */
export const TOOLS_PATH = '/ws/tools';

/**
 * Time without a sign of a program after which its calls are lost, ms. The gateway pings it three
 * times within it.
 */
export const WORKER_LEASE_MS = 15_000;

const Attempt = { callId: z.uuid(), attemptId: z.uuid() } as const;

/** Announces the tools of a program. A later one replaces it. */
export const ServeFrame = z.object({
  type: z.literal('tools.serve'),
  tools: z.array(RemoteToolDeclaration).min(1).max(MAX_TOOLS_OF_WORKER),
  concurrency: z
    .int()
    .min(1)
    .max(MAX_WORKER_CONCURRENCY)
    .default(16)
    .describe('Calls that it takes at one time.'),
});

export const ResultFrame = z.object({
  type: z.literal('result'),
  ...Attempt,
  content: z.string(),
  isError: z.boolean().default(false),
});

/** Next part of a result that is larger than a frame. The last part is in `result`. */
export const ResultPartFrame = z.object({
  type: z.literal('result.part'),
  ...Attempt,
  content: z.string(),
});

export const ProgressFrame = z.object({
  type: z.literal('progress'),
  ...Attempt,
  message: z.string().max(1_000).optional(),
  fraction: z.number().min(0).max(1).optional(),
});

/** Frames of a program. */
export const WorkerFrame = z.discriminatedUnion('type', [
  ServeFrame,
  ResultFrame,
  ResultPartFrame,
  ProgressFrame,
  z.object({ type: z.literal('error'), ...Attempt, message: z.string() }),
  z.object({ type: z.literal('tools.drain') }),
  z.object({ type: z.literal('ping') }),
]);
export type WorkerFrame = z.output<typeof WorkerFrame>;

/** Response to `tools.serve`. */
export const ServingFrame = z.object({
  type: z.literal('tools.serving'),
  workerId: z.string(),
  leaseMs: z.int().positive(),
  tools: z.array(RegisteredTool),
  refused: z.array(RefusedTool),
});

/** One attempt of a call. */
export const CallFrame = z.object({
  type: z.literal('tools.call'),
  ...Attempt,
  epoch: z.int().nonnegative().describe('Fencing epoch: a newer driver of the session has a higher one.'),
  tool: z.string(),
  input: z.json(),
  idempotencyKey: z.string().describe('The same for each attempt of the call.'),
  deadline: z.iso.datetime().describe('Time of the timeout by the clock of the gateway.'),
  timeoutMs: z.int().positive(),
  sessionId: z.uuid(),
  agentId: z.string().nullable(),
});

export const CancelFrame = z.object({
  type: z.literal('tools.cancel'),
  ...Attempt,
  reason: z.enum(['cancelled', 'timeout']),
});

/** Frames to a program. */
export const GatewayToolFrame = z.discriminatedUnion('type', [
  ServingFrame,
  CallFrame,
  CancelFrame,
  z.object({ type: z.literal('pong') }),
  z.object({ type: z.literal('tools.error'), code: z.string(), message: z.string() }),
]);
export type GatewayToolFrame = z.output<typeof GatewayToolFrame>;
