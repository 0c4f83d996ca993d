import { lazy, type ComponentType } from 'react';
import type { IconName } from '../ui/icon.js';
import { matchPath } from './router.js';

export interface PageProps {
  readonly params: Readonly<Record<string, string>>;
}

export interface Page {
  readonly pattern: string;
  readonly title: string;
  readonly view: ComponentType<PageProps>;
}

const page = (pattern: string, title: string, load: () => Promise<ComponentType<PageProps>>): Page => ({
  pattern,
  title,
  view: lazy(async () => ({ default: await load() })),
});

/** Every page of the application. */
export const PAGES: readonly Page[] = [
  page('/', 'Overview', async () => (await import('../pages/overview.js')).Overview),
  page('/agents', 'Agents', async () => (await import('../pages/agents/agent-list.js')).AgentList),
  page('/agents/:id', 'Agent', async () => (await import('../pages/agents/agent-page.js')).AgentPage),
  page('/sessions', 'Sessions', async () => (await import('../pages/session/session-list.js')).SessionList),
  page(
    '/sessions/:id',
    'Session',
    async () => (await import('../pages/session/session-page.js')).SessionPage,
  ),
  page('/sessions/:id/why/:turn', 'Why', async () => (await import('../pages/why/why-page.js')).WhyPage),
  page('/why/:turn', 'Why', async () => (await import('../pages/why/why-page.js')).WhyPage),
  page('/compare', 'Compare', async () => (await import('../pages/compare/compare-page.js')).ComparePage),
  page('/approvals', 'Approvals', async () => (await import('../pages/approvals.js')).Approvals),
  page('/runs', 'Runs', async () => (await import('../pages/runs/run-list.js')).RunList),
  page('/runs/:id', 'Run', async () => (await import('../pages/runs/run-page.js')).RunPage),
  page('/events', 'Events', async () => (await import('../pages/events/event-list.js')).EventListPage),
  page('/money', 'Money', async () => (await import('../pages/money/money.js')).Money),
  page('/memory', 'Memory', async () => (await import('../pages/memory.js')).Memory),
  page('/audit', 'Audit', async () => (await import('../pages/audit/audit.js')).Audit),
  page(
    '/performance',
    'Metrics',
    async () => (await import('../pages/performance/performance.js')).Performance,
  ),
  page('/dev/states', 'States', async () => (await import('../pages/dev/states.js')).StatesPage),
  page('/dev/graph', 'Graph', async () => (await import('../pages/workflow/graph-load.js')).GraphLoad),
  page('/settings', 'Settings', async () => (await import('../pages/settings/settings.js')).Settings),
  page(
    '/workflows',
    'Workflows',
    async () => (await import('../pages/workflow/workflow-list.js')).WorkflowList,
  ),
  page(
    '/workflows/new',
    'Workflow',
    async () => (await import('../pages/workflow/editor-page.js')).EditorPage,
  ),
  page(
    '/workflows/:id/edit',
    'Workflow',
    async () => (await import('../pages/workflow/editor-page.js')).EditorPage,
  ),
];

/** Pages of the navigation, with the key that follows `g`. */
export const NAVIGATION: readonly { to: string; title: string; icon: IconName; key: string }[] = [
  { to: '/', title: 'Overview', icon: 'overview', key: 'o' },
  { to: '/agents', title: 'Agents', icon: 'agents', key: 'a' },
  { to: '/sessions', title: 'Sessions', icon: 'sessions', key: 's' },
  { to: '/approvals', title: 'Approvals', icon: 'approvals', key: 'p' },
  { to: '/workflows', title: 'Workflows', icon: 'layout', key: 'w' },
  { to: '/runs', title: 'Runs', icon: 'runs', key: 'r' },
  { to: '/events', title: 'Events', icon: 'events', key: 'e' },
  { to: '/money', title: 'Money', icon: 'money', key: 'm' },
  { to: '/memory', title: 'Memory', icon: 'memory', key: 'y' },
  { to: '/performance', title: 'Metrics', icon: 'metrics', key: 't' },
  { to: '/audit', title: 'Audit', icon: 'audit', key: 'u' },
  { to: '/settings', title: 'Settings', icon: 'settings', key: 'c' },
];

/** Returns the page of a path and the values of its pattern. */
export const findPage = (path: string): { page: Page; params: PageProps['params'] } | null => {
  for (const candidate of PAGES) {
    const params = matchPath(candidate.pattern, path);
    if (params) return { page: candidate, params };
  }
  return null;
};
