import { z } from 'zod';
import { defineRoute } from './http-route.js';

/** Routes for the dashboard only. Its pages and files have no route: everyone gets the same. */
export const DASHBOARD_ROUTES = {
  reportViolation: defineRoute({
    method: 'post',
    path: '/csp-report',
    access: 'open',
    tag: 'Dashboard',
    summary: 'Report a violation of the policy',
    description:
      'Browsers send what the Content-Security-Policy of the dashboard refused. At most 16 KiB. Reports are counted, ' +
      'and at most 30 in a minute are logged.',
    body: z.json(),
    bodyMedia: ['application/csp-report', 'application/reports+json'],
    reply: { schema: z.void(), status: 204 },
    example: {
      body: {
        'csp-report': { 'effective-directive': 'img-src', 'blocked-uri': 'https://example.com/a.png' },
      },
    },
  }),
} as const;
