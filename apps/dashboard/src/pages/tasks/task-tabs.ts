import type { RouteReply } from '@antiphon/client';
import type { Task } from './task-row.js';

export type Counts = NonNullable<RouteReply<'listTasks'>['counts']>;
export type TaskState = Task['state'];

/** A tab of the list: the states that it shows. */
export interface TaskTab {
  readonly id: string;
  readonly title: string;
  readonly states: readonly TaskState[];
}

export const ALL: TaskTab = { id: '', title: 'All', states: [] };
/** Tasks that failed, wait for an approval, or have no agent. */
export const NEEDS: TaskTab = { id: 'needs', title: 'Needs me', states: [] };
/** Columns of the board. */
export const STATE_TABS: readonly TaskTab[] = [
  { id: 'queued', title: 'Queued', states: ['queued'] },
  { id: 'running', title: 'Running', states: ['assigned', 'running'] },
  { id: 'failed', title: 'Failed', states: ['failed'] },
  { id: 'ended', title: 'Ended', states: ['completed', 'cancelled'] },
];
export const TABS: readonly TaskTab[] = [NEEDS, ALL, ...STATE_TABS];

/** Returns the number of tasks of a tab. */
export const countOfTab = ({ states }: TaskTab, counts: Counts): number =>
  Object.entries(counts)
    .filter(([state]) => states.length === 0 || states.includes(state as TaskState))
    .reduce((sum, [, count]) => sum + count, 0);
