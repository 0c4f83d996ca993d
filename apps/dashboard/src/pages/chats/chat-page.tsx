import { useEffect, useMemo, useRef } from 'react';
import { PageHead } from '../../app/page-head.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { outboxOf } from '../../data/outbox.js';
import { Link, usePosition } from '../../data/router.js';
import { useStore } from '../../data/store.js';
import type { Turn } from '../../data/transcript.js';
import { begunTurns, cancelledTurns, queuedTurns, runningTurn } from '../../data/turn-queue.js';
import { toolsOf } from '../../data/compare.js';
import { Empty, Loading, ProblemBox, State } from '../../ui/ui.js';
import { useSessionLog, type SessionLog } from '../session/session-log.js';
import { useLiveTexts, useTranscript } from '../session/use-session.js';
import { useSummary } from '../session/use-summary.js';
import { filesByTurn } from './attached-files.js';
import { ChatComposer, type ComposerHandle } from './chat-composer.js';
import { ChatMenu } from './chat-menu.js';
import { ChatPanel, usePanel } from './chat-panel.js';
import { ChatThread } from './chat-thread.js';
import { markSeen } from './seen-chats.js';
import { TurnQueue } from './turn-queue.js';
import { useChats, type ChatEntry } from './use-chats.js';
import css from './chats.module.css';

/** Says what a chat does now. */
const stateOf = (running: Turn | null): readonly [string, string] => {
  if (!running) return ['idle', 'waits for a message'];
  const waits = toolsOf(running).some(({ status }) => status === 'pending');
  return waits ? ['pending', 'waits for a decision'] : ['running', 'answers'];
};

/** Reads a chat: its messages as of the position, those that wait, and its files. */
const useChat = ({ sessionId }: ChatEntry) => {
  const position = usePosition();
  const log = useSessionLog(sessionId, { position });
  const transcript = useTranscript(log, position);
  const summary = useSummary(sessionId, log, transcript, false);
  const { turns } = transcript;
  const running = runningTurn(turns);
  const cancelled = useMemo(() => cancelledTurns(log.events), [log.events]);
  const queued = useMemo(() => queuedTurns(turns, cancelled), [turns, cancelled]);
  const begun = useMemo(() => begunTurns(turns, cancelled), [turns, cancelled]);
  const texts = useLiveTexts(sessionId, running !== null && position === null);
  const files = useMemo(() => filesByTurn(log.events), [log.events]);
  return { position, log, transcript, summary, running, queued, begun, texts, files };
};

/** Notes what of a chat has been shown, for the marks of the list. */
const useSeen = (id: string, { events }: Pick<SessionLog, 'events'>, position: number | null): void => {
  const last = events.at(-1)?.position ?? 0;
  useEffect(() => {
    if (position === null) markSeen(id, last);
  }, [id, last, position]);
};

interface WriteProps {
  readonly chat: ChatEntry;
  readonly running: Turn | null;
  readonly queued: readonly Turn[];
}

/** The queue and the composer of a chat. */
const Write = ({ chat: { id, sessionId }, running, queued }: WriteProps) => {
  const composer = useRef<ComposerHandle | null>(null);
  const { run, problem } = useAct();
  const stop = (): void => {
    if (running) run(() => client.call('session.cancel', { sessionId, turnId: running.turnId }));
  };
  return (
    <div className={css.write}>
      {problem && <ProblemBox problem={problem} />}
      <TurnQueue
        {...{ chat: id, sessionId }}
        turns={queued}
        give={(draft) => composer.current?.give(draft)}
      />
      <ChatComposer
        chat={id}
        handle={composer}
        onSend={(draft) => outboxOf(id).add(draft)}
        onStop={running ? stop : undefined}
      />
    </div>
  );
};

const PastNote = ({ sessionId }: Pick<ChatEntry, 'sessionId'>) => (
  <p className={css.pastNote}>
    This is the past. <Link to={`/sessions/${sessionId}`}>Fork it from its session</Link>, or go back to live
    to write.
  </p>
);

const ChatView = ({ chat }: { readonly chat: ChatEntry }) => {
  const { id, sessionId, name } = chat;
  const { position, log, transcript, summary, running, queued, begun, texts, files } = useChat(chat);
  const panel = usePanel();
  const unsent = useStore(outboxOf(id).messages);
  useSeen(id, log, position);
  if (log.problem) return <ProblemBox problem={log.problem} />;
  if (!log.isLoaded) return <Loading what="the chat" />;
  const [state, words] = stateOf(running);
  const { turns } = transcript;
  const isEmpty = turns.length === 0 && (position !== null || unsent.length === 0);
  return (
    <>
      <section className={css.chat} aria-label={`Chat ${name}`}>
        <PageHead
          title={name}
          tabTitle={`${words} · ${name} · Chats`}
          actions={<ChatMenu chat={chat} panel={panel} />}
        >
          <State of={state}>{words}</State>
        </PageHead>
        {isEmpty && (
          <Empty
            title={position === null ? 'Nothing has been said yet' : 'Nothing was said at this position'}
          />
        )}
        <ChatThread
          {...{ sessionId, texts, files, log }}
          turns={begun}
          before={log.hasLater ? 0 : Math.max(0, summary.count - turns.length)}
        />
        {position === null ? <Write {...{ chat, running, queued }} /> : <PastNote sessionId={sessionId} />}
      </section>
      {panel.isOpen && <ChatPanel {...{ chat, log, transcript, summary }} close={panel.toggle} />}
    </>
  );
};

/** Shows one chat, by its id or its name. */
export const ChatPage = ({ id }: { readonly id: string }) => {
  const { entries, isLoaded, list } = useChats();
  const chat = entries.find((entry) => entry.id === id || entry.name === id);
  if (chat) return <ChatView chat={chat} />;
  if (list.problem) return <ProblemBox problem={list.problem} retry={list.refresh} />;
  if (!isLoaded) return <Loading what="the chat" />;
  return (
    <section className={css.chat}>
      <PageHead title="There is no such chat" />
      <Empty title={id}>
        <p>It may be deleted, or it is a chat of another workspace.</p>
        <Link to="/chats/new">New chat</Link>
      </Empty>
    </section>
  );
};
