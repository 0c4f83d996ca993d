import { lazy, type ComponentType } from 'react';
import type { FindPage, Page, PageProps } from '../app/pages.js';
import { matchPath } from '../data/router.js';

const page = (pattern: string, title: string, load: () => Promise<ComponentType<PageProps>>): Page => ({
  pattern,
  title,
  view: lazy(async () => ({ default: await load() })),
});

/** Every page of the application. */
export const PAGES: readonly Page[] = [
  page('/', 'Overview', async () => (await import('./overview.js')).Overview),
  page('/attention', 'Attention', async () => (await import('./attention.js')).Attention),
  page('/chats', 'Chats', async () => (await import('./chats/chats-page.js')).ChatsPage),
  page('/chats/:chat', 'Chat', async () => (await import('./chats/chats-page.js')).ChatsPage),
  page('/agents', 'Agents', async () => (await import('./agents/agent-list.js')).AgentList),
  page('/agents/:id', 'Agent', async () => (await import('./agents/agent-page.js')).AgentPage),
  page('/messages', 'Messages', async () => (await import('./messages/messages.js')).Messages),
  page('/sessions', 'Sessions', async () => (await import('./session/session-list.js')).SessionList),
  page('/sessions/:id', 'Session', async () => (await import('./session/session-page.js')).SessionPage),
  page('/sessions/:id/why/:turn', 'Why', async () => (await import('./why/why-page.js')).WhyPage),
  page('/why/:turn', 'Why', async () => (await import('./why/why-page.js')).WhyPage),
  page('/compare', 'Compare', async () => (await import('./compare/compare-page.js')).ComparePage),
  page('/approvals', 'Approvals', async () => (await import('./approvals.js')).Approvals),
  page('/runs', 'Runs', async () => (await import('./runs/run-list.js')).RunList),
  page('/runs/:id', 'Run', async () => (await import('./runs/run-page.js')).RunPage),
  page('/events', 'Events', async () => (await import('./events/event-list.js')).EventListPage),
  page('/money', 'Money', async () => (await import('./money/money.js')).Money),
  page('/files/*', 'Files', async () => (await import('./files/files-page.js')).FilesPage),
  page('/tasks', 'Tasks', async () => (await import('./tasks/task-list.js')).TaskList),
  page('/tasks/:id', 'Task', async () => (await import('./tasks/task-page.js')).TaskPage),
  page('/plans/*', 'Plans', async () => (await import('./plans/plan-page.js')).PlanPage),
  page('/memory', 'Memory', async () => (await import('./memory.js')).Memory),
  page('/tools', 'Tools', async () => (await import('./tools/tools.js')).ToolsPage),
  page('/audit', 'Audit', async () => (await import('./audit/audit.js')).Audit),
  page('/performance', 'Metrics', async () => (await import('./performance/performance.js')).Performance),
  page('/dev/states', 'States', async () => (await import('./dev/states.js')).StatesPage),
  page('/dev/graph', 'Graph', async () => (await import('./workflow/graph-load.js')).GraphLoad),
  page('/settings', 'Settings', async () => (await import('./settings/settings.js')).Settings),
  page(
    '/settings/providers',
    'Providers',
    async () => (await import('./providers/provider-list.js')).ProviderList,
  ),
  page('/workflows', 'Workflows', async () => (await import('./workflow/workflow-list.js')).WorkflowList),
  page('/workflows/new', 'Workflow', async () => (await import('./workflow/editor-page.js')).EditorPage),
  page('/workflows/:id/edit', 'Workflow', async () => (await import('./workflow/editor-page.js')).EditorPage),
];

/** Returns the page of a path and the values of its pattern. */
export const findPage: FindPage = (path) => {
  for (const candidate of PAGES) {
    const params = matchPath(candidate.pattern, path);
    if (params) return { page: candidate, params };
  }
  return null;
};
