/**
 * The task queue of a run's tasks: apart from all that takes a moment, because a task may wait a day for somebody's word.
 * Outside of the package's index, so that who polls it need not load the workflows.
 */
export const tasksQueue = (taskQueue: string): string => `${taskQueue}/tasks`;
