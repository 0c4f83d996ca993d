import { z } from 'zod';
import { ApproverRole, EditedArguments } from '../agent/approval-events.js';
import { AnswerCut } from '../agent/events.js';
import type { FrameEvent } from '../agent/frames.js';
import { APPROVAL, EVENT, IDS } from './examples.js';
import { EventView } from './gateway-routes.js';

/** One kind of stream frame: `{"id":1,"event":E,"data":…,"offset":N}`. */
export interface StreamFrameKind {
  readonly summary: string;
  /** Schema of `data`. */
  readonly data: z.ZodType;
  readonly example: unknown;
}

const FRAMES = {
  accepted: {
    summary: 'First frame of a turn. The turn is committed and will end with `done`, even after a crash.',
    data: z.object({ sessionId: z.uuid(), turnId: z.uuid(), agent: z.string() }),
    example: { sessionId: IDS.session, turnId: IDS.turn, agent: 'support' },
  },
  blocked: {
    summary:
      'The turn waits, because its agent may not continue: it is paused, held after failures, or waits for a place in its tree. `until` is the time of the next try, or null if a person has to end the wait. The next frame of the turn ends it.',
    data: z.object({
      turnId: z.uuid(),
      code: z.enum(['AGENT.PAUSED', 'AGENT.ERROR', 'AGENT.QUEUED']),
      message: z.string(),
      remedy: z.string().describe('What to do.'),
      until: z.iso.datetime().nullable(),
    }),
    example: {
      turnId: IDS.turn,
      code: 'AGENT.PAUSED',
      message: 'agent "support" is paused: maintenance',
      remedy: 'resume the agent (antiphon agent resume support), or cancel the turn',
      until: null,
    },
  },
  text: {
    summary:
      'Part of the answer. The answer is the texts of the turn, joined, minus those voided by `restart`.',
    data: z.string(),
    example: 'The invoice was sent on ',
  },
  thought: {
    summary: 'Part of the model’s reasoning, where the provider streams it.',
    data: z.string(),
    example: 'The user asks for the date of the invoice.',
  },
  tool_use: {
    summary: 'A tool call that is recorded and about to be made. `id` links it to its `tool_result`.',
    data: z.object({ id: z.string(), name: z.string(), input: z.json() }),
    example: { id: IDS.call, name: 'calculator', input: { expression: '6*7' } },
  },
  progress: {
    summary:
      'Progress of the tool call `id`, as its program reports it. It has the offset of the frame before it, may be lost, and is not repeated by a resume.',
    data: z.object({
      id: z.string(),
      name: z.string(),
      message: z.string().optional(),
      fraction: z.number().optional().describe('From 0 to 1.'),
    }),
    example: { id: IDS.call, name: 'weather', message: 'asking the station', fraction: 0.5 },
  },
  approval: {
    summary: 'A tool call needs an approval. The turn waits for `approval.answer` until `expiresAt`.',
    data: z.object({
      approvalId: z.uuid(),
      id: z.string(),
      name: z.string(),
      input: z.json(),
      digest: z.string(),
      preview: z.string().optional().describe('Unified diff of the files that the call would change.'),
      answerBy: ApproverRole,
      expiresAt: z.iso.datetime(),
    }),
    example: {
      approvalId: IDS.approval,
      id: IDS.call,
      name: APPROVAL.tool,
      input: APPROVAL.input,
      digest: APPROVAL.digest,
      answerBy: 'operator',
      expiresAt: APPROVAL.expiresAt,
    },
  },
  approval_update: {
    summary:
      'The status of an approval changed: it was decided, it expired, it was voided, or it escalated to `to`.',
    data: z.object({
      approvalId: z.uuid(),
      status: z.enum(['granted', 'denied', 'expired', 'voided', 'escalated']),
      answeredBy: z.string().optional(),
      reason: z.string().optional(),
      edited: EditedArguments.optional().describe(
        'Arguments that the approver gave the call, and their digest. Absent for a call as it was requested.',
      ),
      to: ApproverRole.optional(),
    }),
    example: { approvalId: IDS.approval, status: 'granted', answeredBy: 'operator', reason: '' },
  },
  tool_result: {
    summary: 'Result of the tool call `id`. `is_error` is true if the tool failed or the call was refused.',
    data: z.object({ id: z.string(), content: z.string(), is_error: z.boolean() }),
    example: { id: IDS.call, content: '42', is_error: false },
  },
  usage: {
    summary:
      'Tokens and cost of one model call, in US dollars. `cost_usd` is null if the model has no price. `estimated` is there where the provider did not report all of it. The input includes what a prompt cache read and wrote, which are there where the provider reported them.',
    data: z.object({
      input_tokens: z.int(),
      output_tokens: z.int(),
      cache_read_tokens: z.int().optional(),
      cache_write_tokens: z.int().optional(),
      cost_usd: z.number().nullable(),
      model: z.string(),
      estimated: z.literal(true).optional(),
    }),
    example: { input_tokens: 812, output_tokens: 64, cost_usd: 0.0034, model: 'claude-sonnet-4-5' },
  },
  error: {
    summary: 'Reason why the turn fails. `done` with the status `failed` follows.',
    data: z.object({ code: z.string(), message: z.string() }),
    example: { code: 'BUDGET.EXCEEDED', message: 'token budget exceeded (session: 9500/10000)' },
  },
  restart: {
    summary:
      'A process was lost or an attempt is retried. Discard the frames of this turn from `data.offset` up to this frame.',
    data: z.object({ offset: z.int() }),
    example: { offset: 1_048_577 },
  },
  done: {
    summary:
      'Last frame of a turn. Each turn ends with exactly one. `cut_by` is there if the answer ends early: by its output limit (`length`), or by a filter of the provider (`content_filter`).',
    data: z.object({
      turnId: z.uuid(),
      status: z.enum(['completed', 'failed', 'cancelled']),
      cut_by: AnswerCut.optional(),
    }),
    example: { turnId: IDS.turn, status: 'completed' },
  },
} as const satisfies Readonly<Record<FrameEvent, StreamFrameKind>>;

/**
 * Every kind of stream frame. The index signature lets a client look up an event that it received.
 */
export const STREAM_FRAMES: Readonly<Record<FrameEvent, StreamFrameKind>> &
  Readonly<Record<string, StreamFrameKind>> = FRAMES;

/** Type of the data of each kind of stream frame. */
export type StreamFrameData = {
  readonly [E in FrameEvent]: z.output<(typeof FRAMES)[E]['data']>;
};

/** Kinds of frames of a subscription to events: `{"id":1,"event":E,"data":…,"cursor":"…"}`. */
export const EVENT_FRAMES = {
  subscribed: {
    summary: 'First frame of a subscription. `cursor` is where it begins.',
    data: z.object({
      head: z
        .int()
        .nonnegative()
        .describe('Position of the newest event of the log, as the gateway knows it.'),
    }),
    example: { head: EVENT.position },
  },
  log: { summary: 'One event of the log. `cursor` resumes after it.', data: EventView, example: EVENT },
  live: {
    summary: 'Every event of the past is delivered. Sent once.',
    data: z.object({}),
    example: {},
  },
} as const satisfies Readonly<Record<string, StreamFrameKind>>;
