import { lazy, Suspense, useEffect, useState } from 'react';
import { usePosition } from '../data/router.js';
import { useStore } from '../data/store.js';
import { Icon } from '../ui/icon.js';
import { classes, css as ui } from '../ui/ui.js';
import { attentionCount } from './attention/attention-count.js';
import css from './shell.module.css';

const RETRY_MS = 3_000;

/** Loads the part that counts. It is outside of the page, which has to stay when it cannot be loaded. */
const loadWatch = async () => {
  for (;;)
    try {
      return { default: (await import('./attention/watch-attention.js')).WatchAttention };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
};
const WatchAttention = lazy(loadWatch);

/** Delay of the reads of the count: those of the page come first. */
const LATER_MS = 1_500;

/** Shows how many things need attention, and opens the drawer that lists them. */
export const AttentionButton = () => {
  const count = useStore(attentionCount);
  const isPast = usePosition() !== null;
  const [isOpen, setOpen] = useState(false);
  const [isOn, setOn] = useState(false);
  useEffect(() => {
    // A page of the past reads nothing of the present unless it is asked to.
    if (isPast) return;
    const timer = setTimeout(() => setOn(true), LATER_MS);
    return () => clearTimeout(timer);
  }, [isPast]);
  return (
    <>
      <button
        type="button"
        className={classes(ui.button, css.attention)}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        <Icon name="bell" />
        <span>Attention</span>{' '}
        {count !== null && <span className={count > 0 ? css.count : 'visually-hidden'}>{count}</span>}
        {count !== null && isPast && <span className="visually-hidden"> now</span>}
      </button>
      {(isOn || isOpen) && (
        <Suspense>
          <WatchAttention isOpen={isOpen} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
};
