import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { HTTP_ROUTES } from './index.js';

/** Reads that take no `at`, each with its reason. `docs/flows/time-travel.md` repeats them. */
const WITHOUT_PAST: Readonly<Record<string, string>> = {
  '/api/v1/sessions/{id}/history': 'takes `from` and `to`',
  '/api/v1/runs/{id}/history': 'takes `from` and `to`',
  '/api/v1/workspaces/{id}/chats/{chat}/events': 'resumes after the id of an event',
  '/api/v1/roots': 'each root names its position',
  '/api/v1/archives': 'files of the archives that exist now',
  '/api/v1/dead-letters': 'messages and streams that are stopped now',
  '/api/v1/projections': 'lag of the projections now',
  '/api/v1/plugins': 'plug-ins of the running processes',
  '/api/v1/plugins/{name}': 'a plug-in as the running processes have it',
  '/api/v1/plugins/{name}/versions': 'each version names its time',
  '/api/v1/mcp-servers': 'a changed tool must be seen as changed',
  '/api/v1/config': 'settings of the running gateway, which are no facts',
  '/api/v1/health': 'state of the running processes',
  '/healthz': 'state of the running processes',
  '/readyz': 'state of the running processes',
  '/metrics': 'counters of the running processes',
  '/api/v1/keys': 'a revoked key must be seen as revoked',
  '/webhook/{channel}': 'a handshake with a platform',
  '/api/v1/channels': 'channels of the running processes',
  '/api/v1/channels/{channel}/peers': 'a blocked peer must be seen as blocked',
  '/api/v1/deliveries': 'replies that are stopped now',
  '/api/v1/providers': 'a removed provider must be seen as removed',
  '/api/v1/providers/{name}/models': 'what a vendor lists now',
  '/api/v1/credentials': 'a revoked secret must be seen as revoked',
  '/api/v1/secrets': 'a removed secret must be seen as removed',
  '/api/v1/workspaces': 'tenants of the installation, in no workspace',
  '/api/v1/me': 'the caller of this request',
  '/openapi.json': 'text of this release',
  '/asyncapi.json': 'text of this release',
  '/docs': 'text of this release',
  '/docs/reference.js': 'text of this release',
  '/docs/scalar.js': 'text of this release',
};

const reads = HTTP_ROUTES.filter(({ method }) => method === 'get');

describe('reads of the API', () => {
  it('take a position of the past, or are known to have none', () => {
    const missing = reads.filter(({ query }) => query?.shape['at'] === undefined).map(({ path }) => path);
    expect(missing.sort()).toEqual(Object.keys(WITHOUT_PAST).sort());
  });

  it('name their position and the head of the log in JSON', () => {
    const nameless = reads
      .filter(({ query, reply }) => query?.shape['at'] !== undefined && reply.media === undefined)
      .filter(({ path }) => !path.includes('/files') && !path.endsWith('/file-history'))
      .filter(({ reply: { schema } }) => {
        const { shape = {} } = schema as { readonly shape?: Record<string, unknown> };
        return !('position' in shape || 'atPosition' in shape) || !('head' in shape);
      });
    expect(nameless.map(({ path }) => path)).toEqual([]);
  });

  it('without a past are in the documentation, each with its reason', () => {
    const text = readFileSync('docs/flows/time-travel.md', 'utf8');
    for (const [path, reason] of Object.entries(WITHOUT_PAST)) {
      const row = text.split('\n').find((line) => line.includes(`\`GET ${path}\``)) ?? path;
      expect(row).toContain(reason);
    }
  });
});
