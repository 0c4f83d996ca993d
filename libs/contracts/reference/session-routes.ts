import { z } from 'zod';
import { ExportQuery } from '../gateway/index.js';
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
];
