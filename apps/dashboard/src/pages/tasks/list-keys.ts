import { useEffect, useState } from 'react';
import { hasSingleKeys, isTyping } from '../../app/keys.js';
import { keepPosition, navigate } from '../../data/router.js';
import { pageOfTask, type Task } from './task-row.js';

/** Returns true for a key without Ctrl, Alt or a dialog, while no person types. */
const isListKey = (event: globalThis.KeyboardEvent): boolean => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
  const isFree = hasSingleKeys.get() && !isTyping(event.target);
  return isPlain && isFree && !document.querySelector('dialog[open]');
};

/** Keys of the list: `j` and `k` move, `x` chooses, Enter opens. */
export const useListKeys = (tasks: readonly Task[], choose: (task: Task) => void) => {
  const [current, setCurrent] = useState('');
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (!isListKey(event)) return;
      const index = tasks.findIndex(({ id }) => id === current);
      const task = tasks[index];
      const step = { j: 1, k: -1 }[event.key];
      const next =
        step === undefined ? undefined : tasks[Math.min(tasks.length - 1, Math.max(0, index + step))];
      if (next) {
        setCurrent(next.id);
        document.querySelector(`[data-task="${CSS.escape(next.id)}"]`)?.scrollIntoView({ block: 'nearest' });
      } else if (event.key === 'x' && task) choose(task);
      else if (event.key === 'Enter' && task && event.target === document.body)
        navigate(keepPosition(pageOfTask(task)));
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [tasks, current, choose]);
  return current;
};
