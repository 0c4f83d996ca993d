import { z } from 'zod';
import { forkSession } from '../agent/requests.js';
import { ExportQuery, ForkBody } from '../gateway/index.js';
import type { HttpRoute } from './http-route.js';

const ById = z.object({ id: z.uuid() });

/** `/api/v1/sessions`: what can be done with the record of a session. */
export const SESSION_ROUTES: readonly HttpRoute[] = [
  {
    method: 'get',
    path: '/api/v1/sessions/{id}/export',
    summary:
      'The events of a session with their hashes, held against their chain first: JSON lines with a header, or one document.',
    params: ById,
    query: ExportQuery,
    reply: { schema: z.string(), media: 'application/jsonl' },
    problems: {
      404: 'there is no session with this id',
      500: 'an event is not what was appended (`LOG.CHAIN_BROKEN`); `detail` names it',
    },
  },
  {
    method: 'post',
    path: '/api/v1/sessions/{id}/fork',
    summary:
      'A new session that goes on from this one as it was behind an event; with `whatIf`, turns that followed are made again by another model, tools answering from the record.',
    params: ById,
    body: ForkBody,
    idempotent: true,
    reply: { schema: forkSession.reply, status: 201 },
    problems: {
      404: 'there is no such session, agent or provider',
      409: 'the `Idempotency-Key` was used for another request',
      422: 'the version lies inside a turn (`detail` names the nearest ones that do not), or no turn follows it',
    },
  },
];
