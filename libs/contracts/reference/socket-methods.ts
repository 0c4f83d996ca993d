import { z } from 'zod';
import type { Access } from '../identity/index.js';
import { ApprovalView, listApprovals } from '../agent/approval-requests.js';
import { cancelTurn, forkSession, newSession } from '../agent/requests.js';
import type { Feature } from '../gateway/index.js';
import {
  ApprovalAnswerParams,
  ApprovalParams,
  ApprovalsQuery,
  ChatSendParams,
  ConnectParams,
  EventsSubscribeParams,
  EventsUnsubscribeParams,
  SessionCancelParams,
  SessionForkParams,
  SessionNewParams,
  SessionResumeParams,
  SessionSendParams,
} from '../gateway/index.js';
import { AGENT_STREAM_METHODS } from './agent-stream-methods.js';
import { AGENT_METHODS, TASK_METHODS } from './agent-methods.js';
import { MEMORY_METHODS } from './memory-routes.js';
import { APPROVAL, FORK, IDS, SESSION_KEY, STATUS } from './examples.js';
import { StatusView } from './status-view.js';

/** One method of `/ws`. */
export interface SocketMethod {
  readonly name: string;
  /** Rule of the method. The gateway denies every request that does not satisfy it. */
  readonly access: Access;
  /** Feature that gates the method. While it is off, requests get `GATEWAY.FEATURE_OFF`. */
  readonly feature?: Feature;
  /** Short title. */
  readonly summary: string;
  /** Effect of the method, with its limits and errors. Markdown. */
  readonly description: string;
  readonly params: z.ZodType;
  /**
   * Schema of the result. `stream`: the request gets stream frames up to `done` instead of a
   * result. `events`: it gets `EVENT_FRAMES` until the subscription ends.
   */
  readonly answer: z.ZodType | 'stream' | 'events';
  /** Values that the reference shows. `result` is absent for a stream. */
  readonly example: { readonly params: unknown; readonly result?: unknown };
}

const None = z.strictObject({});

const CONVERSATION = [
  {
    name: 'chat.send',
    access: 'sessions:write',
    summary: 'Send a message',
    description:
      'Sends a message from a channel address. The bindings choose the agent unless `agent` names it, and the address ' +
      'determines the session. Turns of a session run one after another. `/new` as the content starts a new session and ' +
      'returns it as a result. Errors: -32029 over budget or rate, -32053 an engine is down.',
    params: ChatSendParams,
    answer: 'stream',
    example: {
      params: { channel: 'web', account: 'main', peer: 'alice', content: 'When was my invoice sent?' },
    },
  },
  {
    name: 'session.send',
    access: 'sessions:write',
    summary: 'Send a message to a session',
    description:
      'Sends a message to an existing session. Errors: -32004 for an unknown session, else as `chat.send`.',
    params: SessionSendParams,
    answer: 'stream',
    example: { params: { sessionId: IDS.session, content: 'And how much is it?' } },
  },
  {
    name: 'session.new',
    access: 'sessions:write',
    summary: 'Start a new session',
    description:
      'Binds the key of a session or of an address to a new session. The old session stays readable.',
    params: SessionNewParams,
    answer: newSession.reply,
    example: {
      params: { sessionId: IDS.session },
      result: {
        sessionId: IDS.fork,
        sessionKey: SESSION_KEY,
        agentId: 'support',
        previousSessionId: IDS.session,
      },
    },
  },
  {
    name: 'session.resume',
    access: 'sessions:read',
    summary: 'Resume a stream',
    description:
      'Streams every frame of a session after an offset, then new frames as they come, until the connection closes or ' +
      'the session is resumed again. It works on any gateway. A client that passes the last offset it saw gets each ' +
      'frame once. With `turnId` it streams the frames of that turn and ends with its `done`. ' +
      'Errors: -32004 for an unknown session, -32009 for an offset that the session has not reached.',
    params: SessionResumeParams,
    answer: 'stream',
    example: { params: { sessionId: IDS.session, after: 1_048_580 } },
  },
  {
    name: 'session.cancel',
    access: 'sessions:write',
    summary: 'Cancel a turn',
    description:
      'Cancels a turn: by default the open turn and every queued one. The stream ends with `done`.',
    params: SessionCancelParams,
    answer: cancelTurn.reply,
    example: { params: { sessionId: IDS.session }, result: { cancelled: true } },
  },
  {
    name: 'session.fork',
    access: 'sessions:write',
    summary: 'Fork a session',
    description:
      'Creates a session that continues from an earlier state of this one. With `whatIf` the next turns are repeated ' +
      'with another model. Errors: -32602 if `atVersion` lies inside a turn.',
    params: SessionForkParams,
    answer: forkSession.reply,
    example: { params: { sessionId: IDS.session, atVersion: 42 }, result: FORK },
  },
] as const satisfies readonly SocketMethod[];

const APPROVALS = [
  {
    name: 'approval.answer',
    access: 'approvals:answer',
    summary: 'Decide an approval',
    description:
      'Approves or denies a tool call. The first decision wins; a later one gets -32009 with the approver and the time ' +
      'of the first. With `input` the call is approved with other arguments. Errors: -32003 if this credential may not ' +
      'decide or the policy denies the arguments, -32602 if the tool does not take them, -32004 for an unknown approval.',
    params: ApprovalAnswerParams,
    answer: z.object({ recorded: z.literal(true) }),
    example: { params: { approvalId: IDS.approval, decision: 'approve' }, result: { recorded: true } },
  },
  {
    name: 'approval.list',
    access: 'approvals:read',
    summary: 'List approvals',
    description: 'Returns the approvals of all sessions, newest first.',
    params: ApprovalsQuery,
    answer: listApprovals.reply,
    example: { params: { status: 'pending' }, result: { approvals: [APPROVAL], nextCursor: null } },
  },
  {
    name: 'approval.get',
    access: 'approvals:read',
    summary: 'Get an approval',
    description: 'Returns one approval: the tool, its arguments, its status and the decision.',
    params: ApprovalParams,
    answer: ApprovalView,
    example: { params: { approvalId: IDS.approval }, result: APPROVAL },
  },
] as const satisfies readonly SocketMethod[];

const EVENTS = [
  {
    name: 'events.subscribe',
    access: 'events:read',
    summary: 'Subscribe to events',
    description:
      'Streams the events of the workspace under the id of the request, each once and in the order of the log: first those ' +
      'after `from`, then new ones as they are appended. It works on any gateway. A client that passes the cursor of its last ' +
      'frame misses none. Archived events are left out. A connection has at most 100 subscriptions. Errors: -32602 for an invalid ' +
      'cursor, -32009 if the log was restored since the cursor was issued, -32029 over 100 subscriptions.',
    params: EventsSubscribeParams,
    answer: 'events',
    example: { params: { filter: { severity: 'error' }, from: 'cDEwMjRlMQ' } },
  },
  {
    name: 'events.unsubscribe',
    access: 'events:read',
    summary: 'End a subscription',
    description: 'Ends a subscription of this connection. No frame of it follows the response.',
    params: EventsUnsubscribeParams,
    answer: z.object({ unsubscribed: z.boolean().describe('False if there is no such subscription.') }),
    example: { params: { subscription: 1 }, result: { unsubscribed: true } },
  },
] as const satisfies readonly SocketMethod[];

const CONNECTION = [
  {
    name: 'connect',
    access: 'open',
    summary: 'Authenticate',
    description:
      'Authenticates the connection. Required as the first frame, within 5 seconds, if a token is configured and the ' +
      'upgrade had no `Authorization` header. A wrong or missing token closes the connection with 4401.',
    params: ConnectParams,
    answer: z.object({ connectionId: z.string() }),
    example: { params: { token: '…' }, result: { connectionId: IDS.event } },
  },
  {
    name: 'ping',
    access: 'authenticated',
    summary: 'Check the connection',
    description: 'Returns `"pong"`.',
    params: None,
    answer: z.literal('pong'),
    example: { params: {}, result: 'pong' },
  },
  {
    name: 'status',
    access: 'status:read',
    summary: 'Get the status of the installation',
    description: 'Returns the same as `GET /api/v1/health`.',
    params: None,
    answer: StatusView,
    example: { params: {}, result: STATUS },
  },
] as const satisfies readonly SocketMethod[];

const ALL = [
  ...CONNECTION,
  ...CONVERSATION,
  ...APPROVALS,
  ...EVENTS,
  ...AGENT_METHODS,
  ...AGENT_STREAM_METHODS,
  ...TASK_METHODS,
  ...MEMORY_METHODS,
] as const;

/** Name of a method of `/ws`. */
export type SocketMethodName = (typeof ALL)[number]['name'];

/** Type of all methods of `/ws` by name, with their schemas. */
export type SocketMethodTable = { readonly [M in (typeof ALL)[number] as M['name']]: M };

/** All methods of `/ws`. */
export const SOCKET_METHODS: readonly SocketMethod[] = ALL;

/** All methods of `/ws` by name. */
export const METHODS = Object.fromEntries(ALL.map((method) => [method.name, method])) as SocketMethodTable;

/** Returns a method of the reference; undefined for an unknown method. */
export const findMethod = (name: string): SocketMethod | undefined =>
  Object.hasOwn(METHODS, name) ? METHODS[name as SocketMethodName] : undefined;
