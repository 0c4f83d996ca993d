import type { AgentHop, AnswerCut, MessageFile, SessionEventOf, TurnRole } from '@antiphon/contracts/agent';
import type { ApprovalCommand } from './approval.decider.js';
import type { BlockedBy } from './session-state.js';

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Data;
  /** ISO 8601, UTC: time arrives with the command. */
  readonly now: string;
}

type Completed = SessionEventOf<'ModelCallCompleted'>['data'];
type Aborted = SessionEventOf<'ModelCallAborted'>['data'];
/** Fields of an attempt that its start recorded. */
type FromStarted = 'turnId' | 'step' | 'provider' | 'model' | 'reservationId';

export type ToolOutcome =
  | Omit<SessionEventOf<'ToolCallCompleted'>, 'schemaVersion'>
  | Omit<SessionEventOf<'ToolCallFailed'>, 'schemaVersion'>
  | Omit<SessionEventOf<'ToolCallUnknown'>, 'schemaVersion'>;

/** A failed try of a tool call that will be retried. */
export type ToolDeferral = Omit<SessionEventOf<'ToolCallDeferred'>, 'schemaVersion'>;

export type StartSession = Command<
  'StartSession',
  Omit<SessionEventOf<'SessionStarted'>['data'], 'startedAt'>
>;
export type RequestTurn = Command<
  'RequestTurn',
  {
    readonly turnId: string;
    readonly content: string;
    readonly files?: readonly MessageFile[] | undefined;
    readonly chain?: AgentHop[] | undefined;
    readonly role?: TurnRole | null | undefined;
    readonly caller?: string | undefined;
  }
>;
/** Records why turns wait. */
export type BlockTurns = Command<'BlockTurns', { readonly turnIds: readonly string[] } & BlockedBy>;
/** Puts messages of the agent's inbox into the context of the open turn, between two model calls. */
export type ReceiveMessages = Command<
  'ReceiveMessages',
  Omit<SessionEventOf<'MessagesReceived'>['data'], 'receivedAt'>
>;
/** Makes the result of a `hand_over` call the answer of the open turn. */
export type ForwardAnswer = Command<
  'ForwardAnswer',
  Omit<SessionEventOf<'AnswerForwarded'>['data'], 'forwardedAt'>
>;
/** Cancels one turn. Without a `turnId`, cancels the open one and every queued one. */
export type CancelTurns = Command<'CancelTurns', { readonly turnId?: string }>;
/** Returns the last answer of the open turn to its agent. */
export type ReturnAnswer = Command<
  'ReturnAnswer',
  Omit<SessionEventOf<'AnswerReturned'>['data'], 'returnedAt'>
>;
/** Gives a message of an ended turn a new text. */
export type EditMessage = Command<'EditMessage', Omit<SessionEventOf<'ChatMessageEdited'>['data'], 'at'>>;
/** Deletes a message of an ended turn from later contexts. */
export type DeleteMessage = Command<
  'DeleteMessage',
  Omit<SessionEventOf<'ChatMessageDeleted'>['data'], 'at'>
>;
/** Attaches a snapshot of a file to the session. */
export type AttachFile = Command<'AttachFile', Omit<SessionEventOf<'ChatFileAttached'>['data'], 'at'>>;
/** Takes a file away from the session. */
export type DetachFile = Command<'DetachFile', Omit<SessionEventOf<'ChatFileDetached'>['data'], 'at'>>;
export type BeginModelCall = Command<
  'BeginModelCall',
  Omit<SessionEventOf<'ModelCallStarted'>['data'], 'attempt' | 'startedAt'>
>;
export type RecordAnswer = Command<'RecordAnswer', Omit<Completed, FromStarted | 'completedAt'>>;
export type RecordFailure = Command<'RecordFailure', Omit<Aborted, FromStarted | 'abortedAt'>>;
export type RequestTools = Command<
  'RequestTools',
  {
    readonly turnId: string;
    readonly calls: readonly Pick<
      SessionEventOf<'ToolCallRequested'>['data'],
      'callId' | 'digest' | 'idempotencyKey' | 'idempotent' | 'retry' | 'timeoutMs'
    >[];
  }
>;
/** Starts calls again whose process was lost without an outcome. */
export type RestartTools = Command<
  'RestartTools',
  { readonly turnId: string; readonly callIds: readonly string[] }
>;
/** Releases calls of a process that stops in order, so that it is not counted as lost. */
export type ReleaseTools = Command<
  'ReleaseTools',
  { readonly turnId: string; readonly callIds: readonly string[] }
>;
/**
 * Claims calls of tools that are not idempotent. A call is sent only after its claim is in the log.
 */
export type ClaimTools = Command<
  'ClaimTools',
  { readonly turnId: string; readonly callIds: readonly string[] }
>;
export type RecordToolOutcomes = Command<
  'RecordToolOutcomes',
  { readonly outcomes: readonly (ToolOutcome | ToolDeferral)[] }
>;
export type EndTurn = Command<
  'EndTurn',
  { readonly turnId: string } & (
    | { readonly ending: 'cancelled' }
    | { readonly ending: 'completed'; readonly cutBy?: AnswerCut }
    | ({ readonly ending: 'failed' } & Pick<SessionEventOf<'TurnFailed'>['data'], 'code' | 'cause'>)
  )
>;

export type ForkSession = Command<'ForkSession', Omit<SessionEventOf<'SessionForked'>['data'], 'forkedAt'>>;

export type SessionCommand =
  | StartSession
  | ForkSession
  | RequestTurn
  | BlockTurns
  | CancelTurns
  | ReceiveMessages
  | ForwardAnswer
  | ReturnAnswer
  | EditMessage
  | DeleteMessage
  | AttachFile
  | DetachFile
  | BeginModelCall
  | RecordAnswer
  | RecordFailure
  | ApprovalCommand
  | RequestTools
  | ClaimTools
  | RestartTools
  | ReleaseTools
  | RecordToolOutcomes
  | EndTurn;
