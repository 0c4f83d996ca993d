import { z } from 'zod';
import { cancelTurn, forkSession, newSession } from '../agent/requests.js';
import {
  ChatSendParams,
  ConnectParams,
  SessionCancelParams,
  SessionForkParams,
  SessionNewParams,
  SessionResumeParams,
  SessionSendParams,
} from '../gateway/index.js';
import { APPROVAL_FRAMES, APPROVAL_METHODS } from './approval-methods.js';
import { StatusView } from './http-routes.js';

/** One method of `/ws`, as its reference tells it. */
export interface SocketMethod {
  readonly name: string;
  readonly summary: string;
  readonly params: z.ZodType;
  /** `stream`: frames under the request's id, up to `done`. */
  readonly answer: z.ZodType | 'stream';
}

const None = z.strictObject({});

export const SOCKET_METHODS: readonly SocketMethod[] = [
  {
    name: 'connect',
    summary: 'Says who speaks. The first frame where a token is configured and the upgrade carried none.',
    params: ConnectParams,
    answer: z.object({ connectionId: z.string() }),
  },
  { name: 'ping', summary: 'Answers.', params: None, answer: z.literal('pong') },
  { name: 'status', summary: 'What `GET /api/v1/health` tells.', params: None, answer: StatusView },
  {
    name: 'chat.send',
    summary:
      'Sends a message from a place; the bindings choose the agent, unless it is named. `/new` begins a new session.',
    params: ChatSendParams,
    answer: 'stream',
  },
  {
    name: 'session.send',
    summary: 'Sends a message to a session that exists.',
    params: SessionSendParams,
    answer: 'stream',
  },
  {
    name: 'session.new',
    summary: "Binds the session's key to a new session; the old one stays readable.",
    params: SessionNewParams,
    answer: newSession.reply,
  },
  {
    name: 'session.fork',
    summary: 'A new session that goes on from this one as it was behind an event.',
    params: SessionForkParams,
    answer: forkSession.reply,
  },
  {
    name: 'session.cancel',
    summary: 'Cancels a turn, by default the one that runs.',
    params: SessionCancelParams,
    answer: cancelTurn.reply,
  },
  {
    name: 'session.resume',
    summary: 'Every frame after an offset, and then the frames to come, until the connection ends.',
    params: SessionResumeParams,
    answer: 'stream',
  },
  ...APPROVAL_METHODS,
];

/** What each kind of stream frame carries in `data`. */
export const STREAM_FRAMES: Readonly<Record<string, { readonly summary: string; readonly data: z.ZodType }>> =
  {
    accepted: {
      summary: 'The turn is committed: it will be finished.',
      data: z.object({ sessionId: z.uuid(), turnId: z.uuid(), agent: z.string() }),
    },
    text: { summary: 'A piece of the answer.', data: z.string() },
    thought: { summary: 'A piece of what the model thought.', data: z.string() },
    tool_use: {
      summary: 'A tool call that is recorded and about to be made.',
      data: z.object({ id: z.string(), name: z.string(), input: z.json() }),
    },
    ...APPROVAL_FRAMES,
    tool_result: {
      summary: 'What a tool answered.',
      data: z.object({ id: z.string(), content: z.string(), is_error: z.boolean() }),
    },
    usage: {
      summary: 'What one model call used.',
      data: z.object({
        input_tokens: z.int(),
        output_tokens: z.int(),
        cost_usd: z.number().nullable(),
        model: z.string(),
      }),
    },
    error: { summary: 'Why the turn fails.', data: z.object({ code: z.string(), message: z.string() }) },
    restart: {
      summary: 'What the attempt before has sent since `offset` is void: its process was lost.',
      data: z.object({ offset: z.int() }),
    },
    done: {
      summary: 'The end of the turn, always and once.',
      data: z.object({ turnId: z.uuid(), status: z.enum(['completed', 'failed', 'cancelled']) }),
    },
  };
