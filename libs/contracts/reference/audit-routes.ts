import { z } from 'zod';
import { Position } from '../gateway/index.js';
import { AuditRecorded, SignedAuditResult } from '../keys/index.js';
import { asOfReply } from '../log/index.js';
import { PROOF_EXAMPLE } from './examples.js';
import { defineRoute } from './http-route.js';

/** A recorded result of an audit. */
export const RecordedAudit = AuditRecorded.shape.data.extend({
  recordedAt: z.iso.datetime(),
  position: z.int().positive().describe('Position of the record in the log.'),
});
export type RecordedAudit = z.infer<typeof RecordedAudit>;

const RESULT = {
  auditId: '0192f0c1-7a2b-7c3d-8e4f-000000000009',
  ...{ ok: true, headPosition: 184_203, events: 184_203, since: null, isLive: true },
  ...{ signing: 'signed' as const, durationMs: 41_300, first: null },
  checks: [
    {
      ...{ name: 'turns-end-once', about: 'every accepted turn ends exactly once', counts: 'turns' },
      ...{ checked: 9_120, violations: 0, open: 3 },
    },
  ],
};
const RECORD = { recordedBy: 'key/mfrggzdfmztwq2lk', recordedAt: '2026-11-22T10:00:00.000Z' };

/** Results of `antiphon audit`, of the workspace `default`. */
export const AUDIT_ROUTES = {
  listAudits: defineRoute({
    method: 'get',
    path: '/api/v1/audits',
    access: 'events:read',
    tag: 'Log',
    summary: 'List results of audits',
    description:
      'Returns recorded results of `antiphon audit`, newest first. An audit reads every workspace, so only the workspace ' +
      '`default` has results.',
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(50).default(10),
      at: Position.optional().describe('Only results recorded up to this position of the log.'),
    }),
    reply: { schema: z.object({ audits: z.array(RecordedAudit), ...asOfReply }) },
    example: { query: { limit: 1 }, reply: { audits: [{ ...RESULT, ...RECORD, position: 184_204 }] } },
    problems: { 403: '`AGENT.NOT_ALLOWED`: the key of an agent reads no audits' },
  }),
  recordAudit: defineRoute({
    method: 'post',
    path: '/api/v1/audits',
    access: 'operations:write',
    tag: 'Log',
    summary: 'Record the result of an audit',
    description:
      'Records a result as a fact, with the caller that reports it. `antiphon audit --record` signs and sends it. A result ' +
      'that no trusted key signed is refused. The same result again records nothing. A violation in another workspace is counted, and not named.',
    body: SignedAuditResult,
    reply: { schema: z.object({ recorded: z.literal(true) }), status: 201 },
    example: { body: { ...RESULT, proof: PROOF_EXAMPLE }, reply: { recorded: true } },
    problems: {
      403: '`AUDIT.OTHER_WORKSPACE`: only callers of the workspace `default` record audits',
      422: '`AUDIT.UNSIGNED`, `AUDIT.OUTDATED`: no trusted key signed this result, or it is over an hour old',
      409: '`LOG.EVENT_ID_CONFLICT`: another result has this id',
    },
  }),
} as const;
