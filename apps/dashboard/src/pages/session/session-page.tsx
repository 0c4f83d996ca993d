import { lazy, Suspense, useCallback, useRef, useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { isScrubbing, Link, setParams, usePosition } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useStore } from '../../data/store.js';
import { toolsOf } from '../../data/compare.js';
import type { Transcript, Turn } from '../../data/transcript.js';
import { runningTurn } from '../../data/turn-queue.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { formatNumber, formatUsd, shortId } from '../../ui/format.js';
import { useSummary, type Summary } from './use-summary.js';
import { Button, css as ui, Empty, Id, Loading, Panel, ProblemBox, State, Time } from '../../ui/ui.js';
import { Composer } from './composer.js';
import type { Branch } from './branch-dialog.js';
import { ReplayBar } from './replay-bar.js';
import { ScrubbedTurns } from './scrubbed-turns.js';
import { TurnList, type OpenBranch } from './turn-list.js';
import { useSessionLog, type SessionLog } from './session-log.js';
import { useFrom } from './turn-window.js';
import { useLiveTexts, useTranscript } from './use-session.js';
import css from './session.module.css';

const BranchDialog = lazy(async () => ({ default: (await import('./branch-dialog.js')).BranchDialog }));

const stateOf = ({ turns }: Transcript): string => {
  if (turns.length === 0) return 'not begun';
  const running = runningTurn(turns);
  if (!running) return 'idle';
  return toolsOf(running).some(({ status }) => status === 'pending') ? 'pending' : 'running';
};

const STATE_WORDS: Readonly<Record<string, string>> = {
  pending: 'waits for a decision',
  running: 'answers',
  idle: 'waits for a message',
  'not begun': 'not begun yet',
};

interface FactsProps {
  readonly sessionId: string;
  readonly transcript: Transcript;
  readonly summary: Summary;
}

interface LinksProps {
  readonly sessionId: string;
  /** Session that it was forked from. */
  readonly origin: string | null;
}

const SessionLinks = ({ sessionId, origin }: LinksProps) => (
  <p className={css.links}>
    <Link to={`/events?session=${sessionId}`}>Events</Link>
    <Link to={origin ? `/compare?a=${origin}&b=${sessionId}` : `/compare?a=${sessionId}`}>
      {origin ? 'Compare with its origin' : 'Compare with another'}
    </Link>
    <a href={`/api/v1/sessions/${sessionId}/export`} download={`session-${sessionId}.jsonl`}>
      Export with hashes
    </a>
  </p>
);

const Facts = ({ sessionId, transcript, summary }: FactsProps) => {
  const { turns, version } = transcript;
  const { agentId, startedAt, forkedFrom, count, tokens, costMicroUsd } = summary;
  return (
    <Panel
      title="This session"
      isPadded
      actions={
        <CopyRecord
          noun="session"
          json={`/sessions/${sessionId}`}
          command={`antiphon session show ${sessionId}`}
        />
      }
    >
      <dl className={ui.facts}>
        <dt>Agent</dt>
        <dd>
          {agentId ? <Link to={`/agents/${encodeURIComponent(agentId)}`}>{agentId}</Link> : 'not known yet'}
        </dd>
        <dt>Model</dt>
        <dd>{turns.at(-1)?.model ?? 'none yet'}</dd>
        <dt>Started</dt>
        <dd>{startedAt ? <Time at={startedAt} isExact /> : 'not yet'}</dd>
        {forkedFrom && (
          <>
            <dt>Forked from</dt>
            <dd>
              <Link to={`/sessions/${forkedFrom.sessionId}`}>{shortId(forkedFrom.sessionId)}</Link> after
              event {forkedFrom.version}
            </dd>
          </>
        )}
        <dt>Turns</dt>
        <dd>
          {formatNumber(count)} in {formatNumber(version)} events
        </dd>
        <dt>Tokens</dt>
        <dd>{tokens}</dd>
        <dt>Cost</dt>
        <dd>{costMicroUsd === null ? 'unknown' : formatUsd(costMicroUsd)}</dd>
        {transcript.sessionKey && (
          <>
            <dt>Key</dt>
            <dd className={ui.mono}>{transcript.sessionKey}</dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <Id id={sessionId} isWhole />
        </dd>
      </dl>
      <SessionLinks sessionId={sessionId} origin={forkedFrom?.sessionId ?? null} />
    </Panel>
  );
};

const CancelButton = ({ sessionId, turnId }: { readonly sessionId: string; readonly turnId: string }) => {
  const { run, isBusy, problem } = useAct();
  return (
    <>
      <ActButton
        permission="sessions:write"
        icon="stop"
        isOff={isBusy}
        onClick={() => run(() => client.call('session.cancel', { sessionId, turnId }))}
      >
        Cancel the turn
      </ActButton>
      {problem && <ProblemBox problem={problem} />}
    </>
  );
};

/** Keeps the dialog of a fork or a what-if, which opens from a turn. */
const useBranch = (sessionId: string, transcript: Transcript, before: number | null) => {
  const [opened, setOpened] = useState<{ branch: Branch; turn: Turn } | null>(null);
  const open: OpenBranch = useCallback((branch, turn) => setOpened({ branch, turn }), []);
  const dialog = opened && (
    <Suspense>
      <BranchDialog {...opened} {...{ sessionId, transcript, before }} onClose={() => setOpened(null)} />
    </Suspense>
  );
  return { open, dialog };
};

interface ConversationProps {
  readonly sessionId: string;
  readonly log: SessionLog;
  readonly transcript: Transcript;
  readonly summary: Summary;
  readonly openBranch: OpenBranch;
}

const Conversation = ({ sessionId, log, transcript, summary, openBranch }: ConversationProps) => {
  const isPast = usePosition() !== null;
  const from = useFrom();
  const last = transcript.turns.at(-1);
  const isOpen = last !== undefined && last.endedAt === null && !log.hasLater;
  const texts = useLiveTexts(sessionId, isOpen && !isPast);
  return (
    <section className={css.chat} aria-label="Conversation">
      {transcript.turns.length === 0 ? (
        <Empty title={isPast ? 'This session had no turn at this position' : 'Nothing has been said yet'}>
          <p>{isPast ? 'Move the position bar on, or go back to live.' : 'Write the first message below.'}</p>
        </Empty>
      ) : (
        <TurnList
          key={`${sessionId} ${from ?? ''}`}
          {...{ sessionId, texts, openBranch, log }}
          turns={transcript.turns}
          count={summary.count}
          from={from}
        />
      )}
      {from === null ? (
        <Composer sessionId={sessionId} />
      ) : (
        <Button onClick={() => setParams({ from: null }, {})}>Go to the end of the session</Button>
      )}
    </section>
  );
};

/** Returns the position at which a drag began, until it rests. */
const useRestedPosition = (isDragged: boolean): number | null => {
  const position = usePosition();
  const rested = useRef(position);
  if (!isDragged) rested.current = position;
  return rested.current;
};

export const SessionPage = ({ params }: PageProps) => {
  const sessionId = params['id'] ?? '';
  const isDragged = useStore(isScrubbing);
  const position = useRestedPosition(isDragged);
  const from = useFrom();
  const log = useSessionLog(sessionId, { position, from, isScrubbing: isDragged });
  const transcript = useTranscript(log, position);
  const summary = useSummary(sessionId, log, transcript, isDragged);
  const running = log.hasLater ? null : runningTurn(transcript.turns);
  const before = log.hasLater ? null : summary.count - transcript.turns.length;
  const branch = useBranch(sessionId, transcript, before);
  const state = stateOf(transcript);
  // The light turns stay until the page at rest is read.
  const isLight = useRef(false);
  isLight.current = isDragged || (isLight.current && !log.isLoaded);
  const title = summary.title ?? `Session ${shortId(sessionId)}`;
  if (log.problem) return <ProblemBox problem={log.problem} />;
  if (isDragged || (isLight.current && !log.isLoaded))
    return (
      <>
        <PageHead title={title} />
        <ScrubbedTurns {...{ sessionId, log, isDragged }} />
      </>
    );
  if (!log.isLoaded) return <Loading what="the session" />;
  return (
    <>
      <PageHead
        title={title}
        tabTitle={`${STATE_WORDS[state] ?? state} · ${title} · Sessions`}
        actions={running && <CancelButton sessionId={sessionId} turnId={running.turnId} />}
      >
        <State of={state}>{STATE_WORDS[state]}</State>
      </PageHead>
      <ReplayBar sessionId={sessionId} events={log.events} />
      <div className={css.layout}>
        <Conversation {...{ sessionId, log, transcript, summary }} openBranch={branch.open} />
        <Facts {...{ sessionId, transcript, summary }} />
      </div>
      {branch.dialog}
    </>
  );
};
