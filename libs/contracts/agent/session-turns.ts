import { z } from 'zod';
import { EditedArguments } from './approval-events.js';
import { AnswerCut } from './events.js';
import { MessageFile } from './content-parts.js';
import { MAX_TURN_TEXT } from './fold-turns.js';

const Text = z.object({
  text: z.string().describe(`At most ${MAX_TURN_TEXT} characters.`),
  length: z.int().nonnegative().describe('Length of the whole text.'),
});
const at = { position: z.int().positive().describe('Position of its event in the log.') };

/** Approval of a tool call. */
export const TurnApproval = z.object({
  id: z.uuid(),
  status: z.enum(['pending', 'granted', 'denied', 'expired', 'voided']),
  answerBy: z.string(),
  digest: z.string(),
  grants: z.array(z.string()).describe('Capabilities of the module, sorted.'),
  preview: z.string().nullable().describe('Unified diff of the files that the call would change.'),
  expiresAt: z.iso.datetime(),
  answeredBy: z.string().nullable(),
  answeredByName: z.string().nullable().describe('Name of the API key that decided.'),
  reason: z.string().nullable(),
  edited: EditedArguments.optional().describe(
    'Arguments that the approver gave the call, and their digest. Absent for a call as requested.',
  ),
  ...at,
});
export type TurnApproval = z.infer<typeof TurnApproval>;

/** Part of a turn, in the order of the log. */
export const TurnItem = z.discriminatedUnion('kind', [
  Text.extend({ kind: z.literal('text'), provider: z.string(), model: z.string(), ...at }),
  Text.extend({ kind: z.literal('thought'), ...at }),
  Text.extend({
    kind: z.literal('aborted'),
    reason: z.string(),
    message: z.string(),
    ...at,
  }).describe('An attempt that failed. Its text is void.'),
  z.object({
    kind: z.literal('tool'),
    callId: z.uuid(),
    name: z.string(),
    input: z.json(),
    status: z.enum(['asked', 'running', 'completed', 'failed', 'unknown']),
    result: Text.nullable(),
    isError: z.boolean(),
    durationMs: z.number().nullable(),
    approval: TurnApproval.nullable(),
    requestPosition: z
      .int()
      .positive()
      .nullable()
      .describe('Position at which the call or its approval was requested; null before.'),
    endPosition: z.int().positive().nullable(),
    ...at,
  }),
  Text.extend({
    kind: z.literal('received'),
    from: z.string().describe('Agent whose message entered the context.'),
    ...at,
  }),
  Text.extend({ kind: z.literal('returned'), ...at }).describe(
    'Reason why the agent got its answer back, to answer again.',
  ),
  Text.extend({
    kind: z.literal('blocked'),
    code: z.string(),
    until: z.iso.datetime().nullable().describe('Time at which the wait ends, or is tried to end.'),
    isOver: z.boolean().describe('True once the turn continued, or ended.'),
    ...at,
  }).describe('Reason why the turn waits for its agent. A later reason of the same wait replaces it.'),
]);
export type TurnItem = z.infer<typeof TurnItem>;

/** A turn of a session: a message, and all that was said and done for it. */
export const SessionTurn = z.object({
  turnId: z.uuid(),
  status: z.enum(['queued', 'running', 'completed', 'failed', 'cancelled']),
  message: Text.extend({
    at: z.iso.datetime(),
    editedAt: z.iso.datetime().nullable(),
    isDeleted: z.boolean().describe('True if a person deleted it. The text is then empty, also in the past.'),
    files: z
      .array(MessageFile)
      .optional()
      .describe('Files of the message. Absent without any, and for a deleted message.'),
    ...at,
  }),
  model: z.string().nullable().describe('Model of the newest call; null before the first call.'),
  answerEditedAt: z.iso.datetime().nullable(),
  isAnswerDeleted: z.boolean(),
  items: z.array(TurnItem),
  cutBy: AnswerCut.nullable().describe('Present if the provider ended the answer early.'),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  endedAt: z.iso.datetime().nullable(),
  endVersion: z.int().positive().nullable().describe('Version after the turn, at which a fork continues it.'),
  endPosition: z.int().positive().nullable(),
  usage: z.object({
    calls: z.int().nonnegative(),
    inputTokens: z.int().nonnegative(),
    outputTokens: z.int().nonnegative(),
    costMicroUsd: z.int().nonnegative(),
    cacheReadTokens: z.int().nonnegative().optional().describe('Input that a prompt cache read.'),
    cacheWriteTokens: z.int().nonnegative().optional().describe('Input that a prompt cache wrote.'),
    isEstimated: z
      .boolean()
      .optional()
      .describe('True if the provider did not report the usage of each call, and a part is an estimate.'),
  }),
  firstVersion: z.int().positive().describe('Version of its first event in the event stream of the session.'),
  lastVersion: z.int().positive(),
  firstPosition: z.int().positive(),
  lastPosition: z.int().positive(),
});
export type SessionTurn = z.infer<typeof SessionTurn>;

export { deleteTurnPart, foldTurn, foldTurns, MAX_TURN_TEXT, type TurnEvent } from './fold-turns.js';
