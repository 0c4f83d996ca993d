/**
 * Returns the task queue of runs' tasks. It is separate from the queue of short activities, because
 * a task may wait a day for an approval. Not in the package's index: its pollers need no workflows.
 */
export const tasksQueue = (taskQueue: string): string => `${taskQueue}/tasks`;
