import { useEffect, useRef } from 'react';
import { createStore } from '../../data/store.js';
import type { AttentionItem } from './attention-items.js';

const NAME = 'antiphon.notifications';

/** Choice of a person about notifications. The question comes after the first approval. */
type Answer = 'unasked' | 'on' | 'off';

const readAnswer = (): Answer => {
  const kept = localStorage.getItem(NAME);
  return kept === 'on' || kept === 'off' ? kept : 'unasked';
};

/** Whether this browser notifies about what needs attention while its tab is hidden. */
export const notifies = createStore<Answer>(readAnswer());

/** False where a browser has no notifications, such as on a page of plain HTTP. */
export const canNotify = (): boolean => 'Notification' in globalThis && isSecureContext;

/** Turns notifications on, if the browser allows them, or off. */
export const setNotifies = async (isOn: boolean): Promise<void> => {
  const isAllowed = isOn && canNotify() && (await Notification.requestPermission()) === 'granted';
  localStorage.setItem(NAME, isAllowed ? 'on' : 'off');
  notifies.set(isAllowed ? 'on' : 'off');
};

/** Shows one notification of a cause. It has no content: other people may see the screen. */
const notify = (cause: string): void => {
  const shown = new Notification('Antiphon', { body: 'Something needs your attention.', tag: cause });
  shown.onclick = () => {
    focus();
    shown.close();
  };
};

/** Notifies about causes that appear while the tab is hidden, once each until it is shown again. */
export const useNotifications = (items: readonly AttentionItem[], isLoading: boolean): void => {
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    if (isLoading) return;
    const causes = new Set(items.map(({ cause, id }) => cause ?? id));
    const before = known.current;
    known.current = document.hidden ? new Set([...(before ?? []), ...causes]) : causes;
    if (before === null || !document.hidden || notifies.get() !== 'on') return;
    for (const cause of causes) if (!before.has(cause)) notify(cause);
  }, [items, isLoading]);
};
