import { useEffect, useRef, useState } from 'react';
import { usePosition } from '../../data/router.js';
import { AnswerSpeech, growingAnswer } from '../../data/answer-speech.js';
import { useStore } from '../../data/store.js';
import type { Turn } from '../../data/transcript.js';
import { speaksAnswers } from '../../ui/spoken-answers.js';
import { VisibleText } from '../../ui/visible-text.js';
import type { LiveTexts } from './use-session.js';

/** Time between two messages, ms. */
const BETWEEN_MS = 1_000;
/** Messages that stay in the page: a screen reader may still read the ones before the last. */
const KEPT = 3;
/** Newest turns whose answers may grow. */
const RECENT = 20;

interface SpeakerProps {
  readonly turns: readonly Turn[];
  readonly texts: LiveTexts;
}

/** Returns the newest messages, with the number of the first one. */
const useMessages = ({ turns, texts }: SpeakerProps) => {
  const [said, setSaid] = useState<{ readonly first: number; readonly messages: readonly string[] }>({
    first: 0,
    messages: [],
  });
  const latest = useRef({ turns, texts });
  latest.current = { turns, texts };
  const speech = useRef<AnswerSpeech | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const saidAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const say = (): void => {
      timer.current = null;
      speech.current ??= new AnswerSpeech();
      const answers = latest.current.turns
        .slice(-RECENT)
        .map((turn) => growingAnswer(turn, latest.current.texts.get(turn.turnId) ?? ''));
      const message = speech.current.next(answers);
      if (message === '') return;
      saidAt.current = performance.now();
      setSaid(({ first, messages }) => {
        const all = [...messages, message];
        return { first: first + Math.max(0, all.length - KEPT), messages: all.slice(-KEPT) };
      });
    };
    timer.current ??= setTimeout(say, Math.max(0, saidAt.current + BETWEEN_MS - performance.now()));
  }, [turns, texts]);
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
  return said;
};

const Speaker = (props: SpeakerProps) => {
  const { first, messages } = useMessages(props);
  return (
    <div className="visually-hidden" role="log" aria-label="Answer in whole sentences" aria-live="polite">
      {messages.map((message, index) => (
        <p key={first + index}>
          <VisibleText text={message} />
        </p>
      ))}
    </div>
  );
};

/**
 * Announces answers to screen readers as they arrive: whole sentences, at most one message a second.
 * Nothing is said of the past, of an earlier part of a session, and while the setting is off.
 */
export const AnswerSpeaker = ({ isOff, ...props }: SpeakerProps & { readonly isOff: boolean }) => {
  const isOn = useStore(speaksAnswers);
  const isPast = usePosition() !== null;
  return isOn && !isOff && !isPast ? <Speaker {...props} /> : null;
};
