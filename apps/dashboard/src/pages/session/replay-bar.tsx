import type { LogEvent } from '@antiphon/client';
import { useEffect, useRef, useState } from 'react';
import { setParams, useParam, usePosition } from '../../data/router.js';
import { wordsOfType } from '../../ui/format.js';
import { Button, CopyButton, css as ui, IconButton } from '../../ui/ui.js';
import css from './session.module.css';

const STEP_MS = 700;

/** Shows a session again from a turn on, event by event. No model and no tool is called. */
export const startReplay = (position: number): void => setParams({ at: position, replay: 1 }, {});

interface ReplayProps {
  readonly sessionId: string;
  /** Events of the session around the position, in the order of the log. */
  readonly events: readonly LogEvent[];
}

/** Calls back at each step. Other changes of the page do not delay a step. */
const usePlay = (isPlaying: boolean, next: () => void): void => {
  const latest = useRef(next);
  latest.current = next;
  useEffect(() => {
    if (!isPlaying) return;
    const timer = setInterval(() => latest.current(), STEP_MS);
    return () => clearInterval(timer);
  }, [isPlaying]);
};

/** Steps through the events of a session, or plays them. */
export const ReplayBar = ({ sessionId, events }: ReplayProps) => {
  const position = usePosition();
  const isOn = useParam('replay') !== '' && position !== null;
  const [isWanted, setPlaying] = useState(false);
  const index = events.findLastIndex((event) => event.position <= (position ?? 0));
  const isAtEnd = index >= events.length - 1;
  const isPlaying = isWanted && isOn && !isAtEnd;
  const go = (target: number): void => {
    const event = events[target];
    if (event) setParams({ at: event.position });
  };
  usePlay(isPlaying, () => go(index + 1));
  if (!isOn) return null;
  const event = events[index];
  return (
    <div className={css.replay} role="group" aria-label="Replay">
      <strong>Replay</strong>
      <IconButton
        icon="previous"
        label="One event back"
        disabled={index <= 0}
        onClick={() => go(index - 1)}
      />
      <Button icon={isPlaying ? 'pause' : 'play'} disabled={isAtEnd} onClick={() => setPlaying(!isPlaying)}>
        {isPlaying ? 'Pause' : 'Play'}
      </Button>
      <IconButton icon="next" label="One event on" disabled={isAtEnd} onClick={() => go(index + 1)} />
      <span role="status">
        event {event?.streamVersion ?? 0} of {events.at(-1)?.streamVersion ?? 0}
        {event && `, ${wordsOfType(event.type)}`}
      </span>
      <span className={ui.muted}>from the record, at no cost</span>
      <code className={ui.mono}>antiphon session replay {sessionId}</code>
      <CopyButton text={`antiphon session replay ${sessionId}`} label="Copy the command that verifies it" />
      <IconButton icon="close" label="End the replay" onClick={() => setParams({ at: null, replay: null })} />
    </div>
  );
};
