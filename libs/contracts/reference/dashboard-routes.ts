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

const OWN: Identity = {
  ...{ workspace: 'default', role: 'admin', permissions: [...PERMISSIONS], caller: 'local', keyId: null },
  ...{ name: null, agentId: null, expiresAt: null, signedInBy: 'local' },
};

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
    example: { reply: OWN },
  }),
  signIn: defineRoute({
    method: 'post',
    path: '/api/v1/dashboard/session',
    access: 'open',
    tag: 'Dashboard',
    summary: 'Sign in',
    description:
      'Begins a session of the dashboard with an API key, the configured token, or the code of a one-time link. The ' +
      'session is an HttpOnly cookie with SameSite=Strict. It ends after 12 hours, with its key, and by signing out. ' +
      'A credential has at most 20 sessions: a further one ends the oldest. ' +
      'The request needs the header `x-antiphon-csrf`.',
    body: z.union([
      z.strictObject({ key: z.string().min(1).max(4_096) }),
      z.strictObject({
        code: z.string().min(1).max(200),
        replace: z
          .boolean()
          .optional()
          .describe('True to replace the session of another caller, which is refused otherwise.'),
      }),
    ]),
    reply: { schema: Identity },
    example: { body: { key: 'ak_k7f3a2q5zr4mwx6b_…' }, reply: { ...OWN, signedInBy: 'session' } },
    problems: {
      401: '`GATEWAY.SIGN_IN_REFUSED`: the key or the code is not valid, or the code was used',
      409: '`GATEWAY.SESSION_EXISTS`: the browser has a session of another caller than the link; send `replace`',
      403: '`GATEWAY.ORIGIN_REFUSED`: another page sent the request, or the header is missing',
      429: 'too many failed attempts from this address, or `GATEWAY.TOO_MANY_SIGN_INS`: over 20 sign-ins of the address or the key in five minutes',
    },
  }),
  extendSession: defineRoute({
    method: 'patch',
    path: '/api/v1/dashboard/session',
    access: 'authenticated',
    tag: 'Dashboard',
    summary: 'Stay signed in',
    description:
      'Replaces the session of the cookie by one that ends after 12 hours, or with its key. The former cookie ends, and ' +
      'its WebSockets are closed within a second.',
    reply: { schema: Identity },
    example: { reply: { ...OWN, signedInBy: 'session', expiresAt: '2026-11-22T22:15:00.000Z' } },
    problems: {
      401: '`GATEWAY.SIGN_IN_REFUSED`: another request has replaced the session',
      422: '`GATEWAY.NO_SESSION`: the credential is no session of a dashboard',
    },
  }),
  signOut: defineRoute({
    method: 'delete',
    path: '/api/v1/dashboard/session',
    access: 'authenticated',
    tag: 'Dashboard',
    summary: 'Sign out',
    description: 'Ends the session of the cookie, and closes its WebSockets within a second.',
    reply: { schema: z.void(), status: 204 },
    example: {},
  }),
  createLink: defineRoute({
    method: 'post',
    path: '/api/v1/dashboard/links',
    access: 'authenticated',
    tag: 'Dashboard',
    summary: 'Create a one-time link',
    description:
      'Returns the path of a link that signs in once, within five minutes, with the rights of the credential. The code ' +
      'is in the fragment, which browsers send to no server.',
    reply: { schema: z.object({ path: z.string(), expiresAt: z.iso.datetime() }), status: 201 },
    example: { reply: { path: '/#sign-in=ak_…', expiresAt: '2026-11-22T10:20:00.000Z' } },
    problems: { 422: '`GATEWAY.NO_LINK`: the credential cannot sign in, as a session or a local program' },
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
