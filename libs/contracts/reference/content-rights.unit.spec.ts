import { describe, expect, it } from '@jest/globals';
import { FRAME_EVENTS } from '../agent/index.js';
import { EVENT_CONTRACTS } from '../events/index.js';
import { AGENT_FRAME_KINDS } from '../gateway/index.js';
import { PERMISSIONS } from '../identity/index.js';
import { CATEGORIES } from '../log/index.js';
import {
  CONTENT_RIGHTS,
  HTTP_ROUTES,
  rightOfEvent,
  SOCKET_METHODS,
  STREAM_FRAMES,
  VIRTUAL_FILE_KINDS,
} from './index.js';

const KINDS: Readonly<Record<keyof typeof CONTENT_RIGHTS, readonly string[]>> = {
  event: CATEGORIES,
  agentFrame: AGENT_FRAME_KINDS,
  sessionFrame: FRAME_EVENTS,
  virtualFile: VIRTUAL_FILE_KINDS,
};

describe('the rights of contents', () => {
  it.each(Object.entries(KINDS))('%s has a row for each kind, and no other', (table, kinds) => {
    const rights: Readonly<Record<string, string>> = CONTENT_RIGHTS[table as keyof typeof CONTENT_RIGHTS];
    expect(Object.keys(rights).sort()).toEqual([...kinds].sort());
    for (const right of Object.values(rights)) expect(PERMISSIONS).toContain(right);
  });

  // @shows review2-8-second-rights-to-data
  it('cover every event type and every stream frame of the contracts', () => {
    for (const { type, category } of EVENT_CONTRACTS)
      expect([type, CATEGORIES]).toEqual([type, expect.arrayContaining([category])]);
    expect(Object.keys(STREAM_FRAMES).sort()).toEqual([...FRAME_EVENTS].sort());
  });

  it('need an operator for a category of a newer release', () => {
    expect(rightOfEvent('unheard')).toBe('operations:write');
    expect(rightOfEvent('constructor')).toBe('operations:write');
  });

  const accessOf = (method: string, path: string): unknown =>
    HTTP_ROUTES.find((route) => route.method === method && route.path === path)?.access;

  it.each([
    ['session', '/api/v1/sessions/{id}/turns'],
    ['session', '/api/v1/sessions/{id}/export'],
    ['chat', '/api/v1/workspaces/{id}/chats/{chat}'],
    ['agent', '/api/v1/agents/{id}/messages'],
    ['run', '/api/v1/runs/{id}'],
    ['task', '/api/v1/tasks/{id}'],
    ['workflow', '/api/v1/workflows/{id}'],
    ['plan', '/api/v1/plans'],
    ['file', '/api/v1/workspaces/{id}/files/{path}'],
    ['budget', '/api/v1/budgets'],
    ['memory', '/api/v1/memory'],
    ['plugin', '/api/v1/plugins'],
    ['workspace', '/api/v1/audits'],
    ['key', '/api/v1/keys'],
  ] as const)('of events of %s are the rule of GET %s', (category, path) => {
    expect(accessOf('get', path)).toBe(CONTENT_RIGHTS.event[category]);
  });

  it('of frames are the rules of the reads of the same content', () => {
    expect(accessOf('get', '/api/v1/agents/{id}')).toBe(CONTENT_RIGHTS.agentFrame.state);
    expect(accessOf('get', '/api/v1/approvals')).toBe(CONTENT_RIGHTS.agentFrame.blocked);
    expect(accessOf('get', '/api/v1/plans')).toBe(CONTENT_RIGHTS.agentFrame.plan);
    expect(accessOf('get', '/api/v1/memory')).toBe(CONTENT_RIGHTS.agentFrame.memory);
    const resume = SOCKET_METHODS.find(({ name }) => name === 'session.resume');
    expect(new Set(Object.values(CONTENT_RIGHTS.sessionFrame))).toEqual(new Set([resume?.access]));
  });
});
