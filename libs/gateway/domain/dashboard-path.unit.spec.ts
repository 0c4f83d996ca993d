import { describe, expect, it } from '@jest/globals';
import { isDashboardPage } from './dashboard-path.js';

describe('a path of the dashboard', () => {
  it.each([
    '/',
    '/sessions',
    '/sessions/1b2c',
    '/sessions/1b2c/why/7',
    '/agents/research%20lead',
    '/events/',
  ])('%s is a page', (path) => expect(isDashboardPage(path)).toBe(true));

  it.each([
    '/api',
    '/api/v1/agents',
    '/API/v1/agents',
    '/%61pi/v1',
    '/ws',
    '/ws/x',
    '/docs/x',
    '/metrics',
    '/v1/models',
  ])('%s belongs to programs', (path) => expect(isDashboardPage(path)).toBe(false));

  it.each([
    '//api/v1/agents',
    '/x//y',
    '/x%2Fapi',
    '/x/%2e%2e/api',
    '/../api',
    '/x/..;/api',
    '/x%00',
    '/x%5Capi',
    '/%zz',
    'sessions',
  ])('%s has more than one reading', (path) => expect(isDashboardPage(path)).toBe(false));
});
