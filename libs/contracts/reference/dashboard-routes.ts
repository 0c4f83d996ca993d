import { z } from 'zod';
import { PERMISSIONS, Permission, Role } from '../identity/index.js';
import { defineRoute } from './http-route.js';

/** Identity of a credential, as `GET /api/v1/me` returns it. */
export const Identity = z.object({
  workspace: z.string(),
  role: Role,
  permissions: z
    .array(Permission)
    .describe('Permissions of the credential: those of its role, scopes and agent.'),
  caller: z.string().describe('Name in facts: `key/<id>`, `token` or `local`.'),
  keyId: z.string().nullable(),
  name: z.string().nullable().describe('Name of the API key.'),
  agentId: z.string().nullable().describe('Agent whose credential this is.'),
  expiresAt: z.iso.datetime().nullable(),
  signedInBy: z
    .enum(['local', 'token', 'key', 'session'])
    .describe('`local`: no credential was needed. `session`: the cookie of a dashboard.'),
});
export type Identity = z.infer<typeof Identity>;

/** Routes for the dashboard only. Its pages and files have no route: everyone gets the same. */
export const DASHBOARD_ROUTES = {
  readIdentity: defineRoute({
    method: 'get',
    path: '/api/v1/me',
    access: 'authenticated',
    tag: 'Dashboard',
    summary: 'Read the own identity',
    description:
      'Returns the workspace, the role and the permissions of the credential that sent the request.',
    reply: { schema: Identity },
    example: {
      reply: {
        workspace: 'default',
        role: 'admin',
        permissions: [...PERMISSIONS],
        caller: 'local',
        keyId: null,
        name: null,
        agentId: null,
        expiresAt: null,
        signedInBy: 'local',
      },
    },
  }),
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
