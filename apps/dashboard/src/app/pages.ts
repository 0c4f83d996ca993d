import type { ComponentType } from 'react';
import type { IconName } from '../ui/icon.js';

export interface PageProps {
  readonly params: Readonly<Record<string, string>>;
}

export interface Page {
  readonly pattern: string;
  readonly title: string;
  readonly view: ComponentType<PageProps>;
}

/** Returns the page of a path and the values of its pattern. */
export type FindPage = (path: string) => { page: Page; params: PageProps['params'] } | null;

export interface NavigationEntry {
  readonly to: string;
  readonly title: string;
  readonly icon: IconName;
  /** Key that follows `g`. */
  readonly key: string;
}

/** Pages of the navigation, in groups. */
export const NAVIGATION_GROUPS: readonly {
  readonly title: string;
  readonly pages: readonly NavigationEntry[];
}[] = [
  {
    title: 'Work',
    pages: [
      { to: '/', title: 'Overview', icon: 'overview', key: 'o' },
      { to: '/attention', title: 'Attention', icon: 'bell', key: 'n' },
      { to: '/chats', title: 'Chats', icon: 'chats', key: 'h' },
      { to: '/files', title: 'Files', icon: 'files', key: 'f' },
      { to: '/tasks', title: 'Tasks', icon: 'tasks', key: 'k' },
      { to: '/plans', title: 'Plans', icon: 'plans', key: 'l' },
    ],
  },
  {
    title: 'Agents',
    pages: [
      { to: '/agents', title: 'Agents', icon: 'agents', key: 'a' },
      { to: '/messages', title: 'Messages', icon: 'send', key: 'i' },
      { to: '/approvals', title: 'Approvals', icon: 'approvals', key: 'p' },
      { to: '/workflows', title: 'Workflows', icon: 'layout', key: 'w' },
      { to: '/runs', title: 'Runs', icon: 'runs', key: 'r' },
    ],
  },
  {
    title: 'Operate',
    pages: [
      { to: '/sessions', title: 'Sessions', icon: 'sessions', key: 's' },
      { to: '/events', title: 'Events', icon: 'events', key: 'e' },
      { to: '/money', title: 'Money', icon: 'money', key: 'm' },
      { to: '/memory', title: 'Memory', icon: 'memory', key: 'y' },
      { to: '/performance', title: 'Metrics', icon: 'metrics', key: 't' },
      { to: '/audit', title: 'Audit', icon: 'audit', key: 'u' },
    ],
  },
  {
    title: 'Set up',
    pages: [
      { to: '/tools', title: 'Tools', icon: 'tools', key: 'x' },
      { to: '/settings', title: 'Settings', icon: 'settings', key: 'c' },
    ],
  },
];

export const NAVIGATION: readonly NavigationEntry[] = NAVIGATION_GROUPS.flatMap(({ pages }) => pages);
