import type { LogEvent } from '@antiphon/client';
import { useEffect } from 'react';
import { pageOf, summaryOf } from '../data/event-pages.js';
import { isFailure } from '../data/failures.js';
import { onEvents } from '../data/live-log.js';
import { createStore, useStore } from '../data/store.js';
import { wordsOfType } from '../ui/format.js';
import { Icon } from '../ui/icon.js';
import { IconButton } from '../ui/ui.js';
import { VisibleText } from '../ui/visible-text.js';
import { Link } from '../data/router.js';
import css from './shell.module.css';

const MAX_SHOWN = 3;
/** The newest failures, and the number of those before them. */
interface Failures {
  readonly shown: readonly LogEvent[];
  readonly more: number;
}

const NONE: Failures = { shown: [], more: 0 };
const failures = createStore<Failures>(NONE);

const add = ({ shown, more }: Failures, failed: readonly LogEvent[]): Failures => {
  const all = [...shown, ...failed];
  const kept = all.slice(-MAX_SHOWN);
  return { shown: kept, more: more + all.length - kept.length };
};

const dismiss = (position: number): void =>
  failures.update(({ shown, more }) => ({
    shown: shown.filter((event) => event.position !== position),
    more,
  }));

/** Shows failures of agents, turns, tasks and runs as they are committed, until they are closed. */
export const Toasts = () => {
  const { shown, more } = useStore(failures);
  useEffect(
    () =>
      onEvents((events) => {
        const failed = events.filter(isFailure);
        if (failed.length > 0) failures.update((before) => add(before, failed));
      }),
    [],
  );
  return (
    <section className={css.toasts} role="log" aria-label="Failures">
      {shown.map((event) => (
        <div key={event.position} className={css.toast}>
          <Icon name="warning" />
          <Link to={pageOf(event)} onClick={() => dismiss(event.position)}>
            {wordsOfType(event.type)}
          </Link>
          <span>
            <VisibleText text={summaryOf(event)} />
          </span>
          <IconButton icon="close" label="Close this message" onClick={() => dismiss(event.position)} />
        </div>
      ))}
      {more > 0 && (
        <div className={css.toast}>
          <Link to="/events?severity=error" onClick={() => failures.set(NONE)}>
            {more} more failures
          </Link>
          <span />
          <IconButton icon="close" label="Close all messages" onClick={() => failures.set(NONE)} />
        </div>
      )}
    </section>
  );
};
