import { useEffect, useMemo, useRef, useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { identity } from '../../data/identity.js';
import { outboxOf } from '../../data/outbox.js';
import { Link, setParams, usePosition } from '../../data/router.js';
import { useStore } from '../../data/store.js';
import type { Turn } from '../../data/transcript.js';
import { begunTurns, cancelledTurns, queuedTurns, runningTurn } from '../../data/turn-queue.js';
import { toolsOf } from '../../data/compare.js';
import { Button, Empty, Loading, ProblemBox, State } from '../../ui/ui.js';
import { useSessionLog, type SessionLog } from '../session/session-log.js';
import { useFrom } from '../session/turn-window.js';
import { useLiveTexts, useTranscript } from '../session/use-session.js';
import { useSummary } from '../session/use-summary.js';
import { filesByTurn } from './attached-files.js';
import { ChatComposer, type ComposerHandle } from './chat-composer.js';
import { ChatMenu } from './chat-menu.js';
import { FindBar, useFind } from './find-bar.js';
import { Gauge } from './gauge.js';
import { ChatPanel, usePanel } from './chat-panel.js';
import { ChatThread } from './chat-thread.js';
import type { TurnActions } from './chat-turn.js';
import { markSeen } from './seen-chats.js';
import { TurnQueue } from './turn-queue.js';
import { forksOf, useFamily, type FamilyChat, type Lineage } from './use-family.js';
import { useBranching } from './use-branching.js';
import css from './chats.module.css';

/** Says what a chat does now. */
const stateOf = (running: Turn | null): readonly [string, string] => {
  if (!running) return ['idle', 'waits for a message'];
  const waits = toolsOf(running).some(({ status }) => status === 'pending');
  return waits ? ['pending', 'waits for a decision'] : ['running', 'answers'];
};

interface Known {
  readonly chat: FamilyChat;
  readonly family: readonly FamilyChat[];
  readonly lineage: Lineage;
}

/** Joins the turns that a branch has from its origins with its own. */
const useJoined = ({ chat, family, lineage }: Known, begun: readonly Turn[], hasEarlier: boolean) => {
  const { sessionId } = chat;
  return useMemo(() => {
    const inherited = hasEarlier ? [] : lineage.turns;
    const joined = [...inherited, ...begun.map((turn) => ({ turn, sessionId }))];
    const sessions = new Map(inherited.map(({ turn, sessionId: id }) => [turn.turnId, id]));
    return {
      turns: joined.map(({ turn }) => turn),
      inherited: inherited.map(({ turn }) => turn),
      sessionOf: (turnId: string): string => sessions.get(turnId) ?? sessionId,
      forks: forksOf(joined, family),
    };
  }, [lineage, begun, hasEarlier, sessionId, family]);
};

/** Reads a chat: its messages as of the position, those that wait, and its files. */
const useChat = (known: Known) => {
  const { sessionId } = known.chat;
  const position = usePosition();
  const from = useFrom();
  const log = useSessionLog(sessionId, { position, from });
  const transcript = useTranscript(log, position);
  const summary = useSummary(sessionId, log, transcript, false);
  const { turns } = transcript;
  const running = from !== null && log.hasLater ? null : runningTurn(turns);
  const cancelled = useMemo(() => cancelledTurns(log.events), [log.events]);
  const queued = useMemo(() => queuedTurns(turns, cancelled), [turns, cancelled]);
  const begun = useMemo(() => begunTurns(turns, cancelled), [turns, cancelled]);
  const joined = useJoined(known, begun, log.hasEarlier);
  const texts = useLiveTexts(sessionId, running !== null && position === null);
  const files = useMemo(
    () => new Map([...known.lineage.files, ...filesByTurn(log.events)]),
    [log.events, known.lineage],
  );
  return { position, from, log, transcript, summary, running, queued, joined, texts, files };
};

/** Notes what of a chat has been shown, for the marks of the list. */
const useSeen = (id: string, { events }: Pick<SessionLog, 'events'>, position: number | null): void => {
  const last = events.at(-1)?.position ?? 0;
  useEffect(() => {
    if (position === null) markSeen(id, last);
  }, [id, last, position]);
};

interface WriteProps {
  readonly chat: FamilyChat;
  readonly running: Turn | null;
  readonly queued: readonly Turn[];
  readonly onEditLast: () => void;
  /** Newest turn that has called a model; null for none. */
  readonly called: Turn | null;
}

/** The queue and the composer of a chat. */
const Write = ({ chat: { id, sessionId }, running, queued, onEditLast, called }: WriteProps) => {
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
        onEditLast={onEditLast}
      >
        {called && <Gauge sessionId={sessionId} turn={called} />}
      </ChatComposer>
    </div>
  );
};

const PastNote = ({ sessionId }: Pick<FamilyChat, 'sessionId'>) => (
  <p className={css.pastNote}>
    This is the past. <Link to={`/sessions/${sessionId}`}>Fork it from its session</Link>, or go back to live
    to write.
  </p>
);

interface FootProps extends WriteProps {
  readonly position: number | null;
  /** True if the page has only earlier turns of the chat. */
  readonly isPart: boolean;
}

const Foot = ({ position, isPart, ...write }: FootProps) => {
  if (position !== null) return <PastNote sessionId={write.chat.sessionId} />;
  if (!isPart) return <Write {...write} />;
  return <Button onClick={() => setParams({ from: null }, {})}>Go to the end of the chat</Button>;
};

/** Keeps which message is edited, and begins branches. */
const useActions = (chat: FamilyChat) => {
  const [edited, edit] = useState<string | null>(null);
  const { start, view } = useBranching(chat);
  const { run, problem } = useAct();
  const { id, sessionId } = chat;
  const correct = (message: string, content: string): void => {
    const params = { id: identity.get().workspace, chat: id, message };
    run(() => client.http.editMessage({ params, body: { content } }));
  };
  const latest = useRef({ start, correct });
  latest.current = { start, correct };
  const actions = useMemo(
    (): TurnActions => ({
      ...{ edit, own: sessionId },
      branch: (...request) => latest.current.start(...request),
      correct: (...request) => latest.current.correct(...request),
    }),
    [sessionId],
  );
  return { edited, edit, actions, view, problem };
};

const ChatView = (known: Known) => {
  const { chat } = known;
  const { id, name } = chat;
  const { position, from, log, transcript, summary, running, queued, joined, texts, files } = useChat(known);
  const { edited, edit, actions, view, problem } = useActions(chat);
  const panel = usePanel();
  const { isOpen: isFinding, close: closeFind, ...find } = useFind();
  const unsent = useStore(outboxOf(id).messages);
  useSeen(id, log, position);
  if (log.problem) return <ProblemBox problem={log.problem} />;
  if (!log.isLoaded) return <Loading what="the chat" />;
  const [state, words] = stateOf(running);
  const { turns } = joined;
  const isEmpty = turns.length === 0 && (position !== null || unsent.length === 0);
  const own = transcript.turns.length;
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
        {isFinding && (
          <FindBar sessionId={chat.sessionId} inherited={joined.inherited} {...find} onClose={closeFind} />
        )}
        {isEmpty && (
          <Empty
            title={position === null ? 'Nothing has been said yet' : 'Nothing was said at this position'}
          />
        )}
        <ChatThread
          key={from}
          {...joined}
          {...{ texts, files, log, edited, from }}
          actions={position === null ? actions : null}
          before={log.hasLater ? 0 : Math.max(0, summary.count - own)}
        />
        {view}
        {problem && <ProblemBox problem={problem} />}
        <Foot
          {...{ chat, running, queued, position }}
          isPart={log.hasLater}
          called={transcript.turns.findLast(({ model }) => model !== null) ?? null}
          onEditLast={() => edit(lastEnded(turns))}
        />
      </section>
      {panel.isOpen && <ChatPanel {...{ chat, log, transcript, turns, summary }} close={panel.toggle} />}
    </>
  );
};

/** Returns the newest turn that can be edited. */
const lastEnded = (turns: readonly Turn[]): string | null =>
  turns.findLast(({ endedAt, message }) => endedAt !== null && !message.isDeleted)?.turnId ?? null;

const NoSuchChat = ({ id }: { readonly id: string }) => (
  <section className={css.chat}>
    <PageHead title="There is no such chat" />
    <Empty title={id}>
      <p>It may be deleted, not begun yet at this position, or in another workspace.</p>
      <Link to="/chats/new">New chat</Link>
    </Empty>
  </section>
);

/** Shows one chat, by its id or its name. */
export const ChatPage = ({ id }: { readonly id: string }) => {
  const { chat, family, lineage, isLoading, isKnown, failure, problem, refresh } = useFamily(id);
  if (failure && !chat)
    return failure.status === 404 ? <NoSuchChat id={id} /> : <ProblemBox problem={failure} retry={refresh} />;
  if (problem) return <ProblemBox problem={problem} />;
  if (!chat && isKnown) return <NoSuchChat id={id} />;
  if (!chat || isLoading) return <Loading what="the chat" />;
  return <ChatView {...{ chat, family, lineage }} />;
};
