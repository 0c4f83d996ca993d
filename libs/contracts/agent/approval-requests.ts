import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { AgentId } from './agent-id.js';
import { ApproverRole, EditedArguments } from './approval-events.js';

/** Maximum length of the reason of a decision, UTF-16 units. */
export const MAX_REASON_LENGTH = 2_000;
/** Maximum size of edited arguments, bytes of JSON, and their maximum nesting. */
export const MAX_EDITED_BYTES = 65_536;
export const MAX_EDITED_DEPTH = 32;

const nestsWithin = (value: z.core.util.JSONType, levels: number): boolean =>
  value === null ||
  typeof value !== 'object' ||
  (levels > 0 && Object.values(value).every((one) => nestsWithin(one, levels - 1)));

const isBounded = (input: z.core.util.JSONType): boolean =>
  nestsWithin(input, MAX_EDITED_DEPTH) &&
  new TextEncoder().encode(JSON.stringify(input)).length <= MAX_EDITED_BYTES;

/** Arguments in the place of those that an agent asked for. */
export const EditedInput = z
  .json()
  .refine(isBounded, `must have ${MAX_EDITED_BYTES} bytes and ${MAX_EDITED_DEPTH} levels at most`);
export type EditedInput = z.infer<typeof EditedInput>;
/** A place of arguments that the schema of their tool does not allow. */
export const ArgumentProblem = z.object({
  path: z.string().describe('JSON pointer of the place; empty for the arguments as a whole.'),
  message: z.string(),
});
export type ArgumentProblem = z.infer<typeof ArgumentProblem>;
export const APPROVAL_STATUSES = ['pending', 'granted', 'denied', 'expired', 'voided', 'withdrawn'] as const;
export const ApprovalStatus = z.enum(APPROVAL_STATUSES);
export type ApprovalStatus = z.infer<typeof ApprovalStatus>;

/** An approval as the API lists it. */
export const ApprovalView = z.object({
  id: z.uuid(),
  status: ApprovalStatus.describe(
    '`pending` until decided. `expired`: not decided in time. `voided`: the tool changed after the request. ' +
      '`withdrawn`: the turn was cancelled or failed first.',
  ),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  callId: z.uuid().describe('Id of the tool call, as in its `tool_use` frame.'),
  agentId: z.string(),
  rootId: z.string().describe('Root of the tree of agents that the asker belongs to.'),
  path: z
    .array(z.string())
    .describe('Agents from the root of the tree to the asker; only the asker for a single agent.'),
  tool: z.string().describe('Name of the tool that would be called.'),
  input: z.json().describe('Arguments of the call.'),
  digest: z
    .string()
    .describe('Digest of exactly what would run. Send it with the decision to be sure of it.'),
  preview: z
    .string()
    .nullable()
    .default(null)
    .describe('Unified diff of the files that the call would change; null for other calls.'),
  answerBy: ApproverRole.describe('Least privileged role that may decide.'),
  requestedAt: z.iso.datetime(),
  expiresAt: z.iso
    .datetime()
    .describe('Time at which an undecided approval expires and the call is refused.'),
  escalateTo: ApproverRole.nullable().describe('Role that is asked as well after a while; null for none.'),
  escalatedAt: z.iso.datetime().nullable(),
  answeredBy: z
    .string()
    .nullable()
    .describe('Credential that decided; null while undecided or without a decision.'),
  closedAt: z.iso.datetime().nullable().describe('Time at which the approval left `pending`.'),
  reason: z.string().nullable().describe('Reason given with the decision.'),
  edited: EditedArguments.nullable()
    .default(null)
    .describe('Arguments that the approver gave the call, and their digest; null for a call as requested.'),
});
export type ApprovalView = z.infer<typeof ApprovalView>;

/**
 * Principal that decides an approval. A credential with an `agentId` belongs to an agent and may
 * never decide.
 */
export const Approver = z.strictObject({
  caller: z.string().min(1).max(200),
  role: z.enum(['viewer', ...ApproverRole.options]),
  agentId: z.string().nullable(),
  /** Name of the API key; null for any other credential. */
  name: z.string().max(200).nullable().optional(),
});
export type Approver = z.infer<typeof Approver>;

const Decision = z.enum(['approve', 'deny']);

/**
 * Decides an approval. Replies after the commit. A repeated decision of the same caller gets the
 * first reply again.
 */
export const answerApproval = defineRequest({
  subject: 'cmd.agent.approval.answer',
  request: z.strictObject({
    workspace: WorkspaceId,
    approvalId: z.uuid(),
    decision: Decision,
    reason: z.string().max(MAX_REASON_LENGTH),
    /** Digest that the approver has seen. A digest other than the approval's is refused. */
    digest: z.string().max(128).optional(),
    /** Arguments that the call gets in the place of the requested ones. Only with `approve`. */
    input: EditedInput.optional(),
    approver: Approver,
  }),
  reply: z.object({
    recorded: z.literal(true),
    approvalId: z.uuid(),
    decision: Decision,
    answeredBy: z.string(),
    answeredAt: z.iso.datetime(),
    approvedDigest: z
      .string()
      .optional()
      .describe('Digest of the call as it runs. Present if the approver changed its arguments.'),
  }),
  timeoutMs: 10_000,
});

/** Checks arguments for a call that waits, as its decision would. Records nothing. */
export const checkApprovalInput = defineRequest({
  subject: 'cmd.agent.approval.check',
  request: z.strictObject({
    workspace: WorkspaceId,
    approvalId: z.uuid(),
    input: EditedInput,
    approver: Approver,
  }),
  reply: z.object({
    problems: z
      .array(ArgumentProblem)
      .describe('Places that the schema of the tool does not allow. Empty if the arguments may be approved.'),
    deniedByRule: z
      .int()
      .positive()
      .nullable()
      .describe("Number of the rule of the agent's policy that denies these arguments; null for none."),
  }),
  timeoutMs: 10_000,
});

/** Lists the approvals of a workspace, newest first. */
export const listApprovals = defineRequest({
  subject: 'cmd.agent.approval.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    status: ApprovalStatus.optional(),
    sessionId: z.uuid().optional(),
    /** Root of a tree of agents: only approvals of its agents, at any depth. */
    rootId: AgentId.optional(),
    /** Default: newest first. */
    order: z.enum(['asc', 'desc']).optional(),
    limit: z.int().min(1).max(200),
    cursor: z.string().max(200).optional(),
    ...asOfRequest,
  }),
  reply: z.object({
    approvals: z.array(ApprovalView),
    nextCursor: z
      .string()
      .nullable()
      .describe('Pass it as `cursor` for the next page; null on the last page.'),
    ...asOfReply,
  }),
  timeoutMs: 15_000,
});

/** Returns one approval. */
export const getApproval = defineRequest({
  subject: 'cmd.agent.approval.get',
  request: z.strictObject({ workspace: WorkspaceId, approvalId: z.uuid(), ...asOfRequest }),
  reply: ApprovalView.extend(asOfReply),
  timeoutMs: 15_000,
});
