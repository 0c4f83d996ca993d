import { z } from 'zod';
import {
  ApprovalStatus,
  EditedInput,
  MAX_EDITED_BYTES,
  MAX_EDITED_DEPTH,
  MAX_REASON_LENGTH,
} from '../agent/approval-requests.js';
import { AgentId, forkSession } from '../agent/requests.js';
import { SessionState } from '../agent/session-requests.js';
import { RunInputs, WORKFLOW_LIMITS } from '../agent/workflow-definition.js';
import { RUN_STATES } from '../agent/workflow-requests.js';
import { ExportFormat } from '../log/index.js';
import { At, Position } from './at.js';

/** An RFC 9457 problem document. */
export const Problem = z.object({
  type: z.string().describe('`about:blank`: `title` is the title of the HTTP status.'),
  title: z.string(),
  status: z.int(),
  detail: z.string().describe('What happened and what to do, for a person.'),
  instance: z.string().describe('Id of the request, as in the gateway’s log lines.'),
  code: z
    .string()
    .describe('Stable error code for programs, such as `GATEWAY.INVALID_BODY`; listed in docs/errors.md.'),
  data: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Fields of the error: of `FILE.STALE` the `path`, its digests and the `diff` of a text.'),
});
export type Problem = z.infer<typeof Problem>;

/** Path parameter `id` of a resource whose id is a UUID. */
export const ById = z.object({ id: z.uuid('the id must be a UUID') });

const Cursor = z.string().max(200).optional().describe('`nextCursor` of the page before.');
const PageLimit = z.coerce.number().int().min(1).max(200).default(50).describe('Maximum number of items.');

/** Query of every list that pages by a cursor. */
export const PageQuery = z.strictObject({ limit: PageLimit, cursor: Cursor });

const Stream = z
  .string()
  .regex(/^[a-z]{1,20}-[A-Za-z0-9-]{1,180}$/, 'must be the id of an event stream')
  .describe('Event stream, such as `session-<id>` or `run-<id>`.');

const EventTypes = z
  .string()
  .regex(
    /^[A-Za-z]{1,100}(,[A-Za-z]{1,100}){0,49}$/,
    'must be names of event types, with commas between, 50 at most',
  );

/** Filters of events. They combine with AND. */
export const EventFilter = z.strictObject({
  type: EventTypes.optional().describe('Event type, such as `TurnFailed`, or several with commas between.'),
  excludeType: EventTypes.optional().describe('Event types to leave out, with commas between.'),
  category: z
    .string()
    .regex(/^[a-z]{1,20}$/, 'must be a category of events')
    .optional()
    .describe('Category of the event stream, such as `session` or `agent`.'),
  agent: AgentId.optional().describe(
    'Only events of this agent and its sessions, and of runs and queued tasks that it works on.',
  ),
  run: z.uuid().optional().describe('Only events of this run.'),
  session: z.uuid().optional().describe('Only events of this session.'),
  stream: Stream.optional(),
  severity: z
    .enum(['info', 'warning', 'error'])
    .optional()
    .describe(
      '`error`: failures of turns, tool calls, tasks and runs. `warning`: aborts, cancellations, corrections.',
    ),
});
export type EventFilter = z.infer<typeof EventFilter>;

/** Query of `GET /api/v1/events`. */
export const EventsQuery = EventFilter.extend({
  at: At,
  after: Position.optional().describe('Only events after this position.'),
  order: z
    .enum(['asc', 'desc'])
    .optional()
    .describe('`asc`, the default: oldest first. `desc`: newest first.'),
  text: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Only events whose data contains this text, in any case of its letters. Searched without an index.',
    ),
  since: z.iso.datetime({ offset: true }).optional().describe('Only events recorded at this time or later.'),
  until: z.iso.datetime({ offset: true }).optional().describe('Only events recorded before this time.'),
  limit: z.coerce.number().int().min(1).max(1_000).default(100).describe('Maximum number of events.'),
  cursor: Cursor,
  offset: z.coerce
    .number()
    .int()
    .min(0)
    .max(100_000)
    .optional()
    .describe('Number of matching events to skip. A cursor is cheaper on a long log.'),
});
export type EventsQuery = z.infer<typeof EventsQuery>;

/** Query of `GET /api/v1/sessions/:id/export`. */
export const ExportQuery = z.strictObject({
  format: ExportFormat.default('jsonl').describe(
    '`jsonl`: a header line, then one event a line. `json`: one document.',
  ),
  at: Position.optional().describe('Position of the log up to which the events are exported. Default: all.'),
  deleted: z
    .enum(['hide', 'include'])
    .default('hide')
    .describe('`include`: with the texts of deleted messages, for the permission `operations:write`.'),
});

export const SEARCH_KINDS = ['chat', 'message', 'answer', 'task', 'file', 'agent'] as const;
const SearchKinds = z
  .string()
  .transform((text) => text.split(','))
  .pipe(z.array(z.enum(SEARCH_KINDS)).min(1).max(SEARCH_KINDS.length));

/** Query of `GET /api/v1/search`. */
export const SearchQuery = z.strictObject({
  q: z.string().trim().min(1).max(200).describe('Words, or their beginnings. At most eight count.'),
  kinds: SearchKinds.optional().describe(`Kinds to find, separated by commas: ${SEARCH_KINDS.join(', ')}.`),
  limit: z.coerce.number().int().min(1).max(50).default(20).describe('Maximum number of results.'),
  cursor: Cursor,
  at: At,
});
export type SearchQuery = z.output<typeof SearchQuery>;

const ActivityTime = z.iso.datetime({ offset: true }).optional();

/** Filters that lists of sessions and of chats have in common. */
export const ActivityQuery = PageQuery.extend({
  agent: AgentId.optional().describe('Only those of this agent.'),
  agentPart: z.string().min(1).max(200).optional().describe('Only those whose agent id contains this text.'),
  state: SessionState.optional(),
  q: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .optional()
    .describe('Words, or their beginnings, of the name or of the beginning of the first message.'),
  since: ActivityTime.describe('Only those whose last activity is not before this time.'),
  until: ActivityTime.describe('Only those whose last activity is before this time.'),
  at: At,
});

/** Query of `GET /api/v1/sessions`. */
export const SessionsQuery = ActivityQuery.extend({
  channel: z.string().min(1).max(200).optional().describe('Only sessions of this channel.'),
  forkedFrom: z.uuid().optional().describe('Only forks of this session.'),
  text: z.string().min(1).max(200).optional().describe('Only sessions whose key contains this text.'),
});

/** Query of `GET /api/v1/sessions/{id}/turns`. */
export const TurnsQuery = z.strictObject({
  order: z
    .enum(['asc', 'desc'])
    .optional()
    .describe('`desc`, the default: the latest first. `asc`: the oldest first.'),
  limit: z.coerce.number().int().min(1).max(50).default(20).describe('Maximum number of turns.'),
  offset: z.coerce.number().int().min(0).max(1_000_000).optional().describe('Number of turns to skip.'),
  cursor: Cursor,
  at: At,
});

/** Query of `GET /api/v1/sessions/{id}/find`. */
export const FindTextsQuery = z.strictObject({
  text: z.string().min(1).max(200).describe('Text of a message or an answer, in any case of its letters.'),
  at: At,
});

/** Query of `GET /api/v1/sessions/:id/history`. */
export const HistoryRangeQuery = z.strictObject({
  from: Position.default(0).describe('Position of the snapshot. 0, the default, is before every event.'),
  to: Position.optional().describe('Last position. Default: the head of the log.'),
  limit: z.coerce.number().int().min(1).max(1_000).default(500).describe('Maximum number of events.'),
  turns: z.coerce
    .number()
    .int()
    .min(1)
    .max(50)
    .default(20)
    .describe('Maximum number of turns before `from`.'),
});

/** Query of `GET /api/v1/runs/:id/history`. */
export const RunHistoryQuery = HistoryRangeQuery.omit({ turns: true });

/** Body of `POST /api/v1/sessions/:id/fork`. */
export const ForkBody = forkSession.request.omit({
  workspace: true,
  caller: true,
  sessionId: true,
  idempotencyKey: true,
  anyModel: true,
});

/** Query of `GET /api/v1/approvals`, and params of `approval.list`. */
export const ApprovalsQuery = z.strictObject({
  status: ApprovalStatus.optional(),
  session: z.uuid().optional().describe('Only approvals of this session.'),
  root: AgentId.optional().describe('Only approvals of agents in the tree of this root.'),
  order: z.enum(['asc', 'desc']).default('desc').describe('`asc`: oldest first.'),
  at: At,
  limit: PageLimit,
  cursor: Cursor,
});
/** Body of `POST /api/v1/approvals/:id/answer`. */
export const ApprovalAnswerBody = z.strictObject({
  decision: z.enum(['approve', 'deny']),
  reason: z
    .string()
    .max(MAX_REASON_LENGTH)
    .default('')
    .describe('Reason of the decision. The model gets the reason of a denial.'),
  digest: z
    .string()
    .max(128)
    .optional()
    .describe(
      'Digest that the approver has seen. A decision with another digest is refused with a conflict.',
    ),
  input: EditedInput.optional().describe(
    'Arguments that the call gets in the place of the requested ones: only with `approve`, ' +
      `at most ${MAX_EDITED_BYTES} bytes and ${MAX_EDITED_DEPTH} levels. ` +
      'They are checked by the schema of the tool and by the policy of the agent.',
  ),
});
/** Body of `POST /api/v1/approvals/:id/check`. */
export const ApprovalCheckBody = z.strictObject({
  input: EditedInput.describe('Arguments that the call would get.'),
});
export const ApprovalParams = z.strictObject({ approvalId: z.uuid() });
export const ApprovalAnswerParams = ApprovalAnswerBody.extend({ approvalId: z.uuid() });

const Source = z.union([z.string().min(1).max(WORKFLOW_LIMITS.sourceLength), z.record(z.string(), z.json())]);

/** Body that saves a workflow: YAML text, the definition as JSON, or `{definition, draft}`. */
export const WorkflowBody = z
  .union([
    z.string().min(1).max(WORKFLOW_LIMITS.sourceLength).describe('Definition as YAML (`application/yaml`).'),
    z
      .strictObject({
        definition: Source,
        draft: z.boolean().optional().describe('True saves an invalid definition instead of refusing it.'),
        version: z
          .int()
          .positive()
          .optional()
          .describe('Version that was edited: a save over a newer one is refused with 409.'),
      })
      .describe('Definition as YAML text or JSON, with options.'),
    z.record(z.string(), z.json()).describe('Definition as JSON.'),
  ])
  .transform((body) =>
    typeof body === 'string' || !('definition' in body)
      ? { source: body, draft: false }
      : {
          source: body.definition as z.output<typeof Source>,
          draft: body.draft === true,
          ...(typeof body.version === 'number' ? { version: body.version } : {}),
        },
  );

/** Body of `POST /api/v1/workflows/:id/start`. */
export const StartBody = z.preprocess((body) => body ?? {}, z.strictObject({ inputs: RunInputs.optional() }));

/** Body of `POST /api/v1/runs`. */
export const RunBody = z.strictObject({
  workflow: Source.describe('Definition of the workflow, as YAML text or JSON.'),
  inputs: RunInputs.optional(),
});

/** Query of `GET /api/v1/runs`. */
export const RunsQuery = PageQuery.extend({
  workflow: z.uuid().optional().describe('Only runs of this workflow.'),
  status: z.enum(RUN_STATES).optional(),
  at: At,
});
