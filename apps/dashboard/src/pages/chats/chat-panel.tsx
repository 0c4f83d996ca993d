import { useEffect, useState } from 'react';
import { hasSingleKeys, isTyping } from '../../app/keys.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { Link, usePosition } from '../../data/router.js';
import type { Transcript } from '../../data/transcript.js';
import { formatBytes, formatNumber, formatUsd } from '../../ui/format.js';
import { ActButton } from '../../ui/act-button.js';
import { css as ui, IconButton, Id, ProblemBox, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import type { SessionLog } from '../session/session-log.js';
import type { Summary } from '../session/use-summary.js';
import { identity, useIdentity } from '../../data/identity.js';
import { useRead } from '../../data/use-read.js';
import { attachedNow, type AttachedFile } from './attached-files.js';
import type { FamilyChat } from './use-family.js';
import css from './chats.module.css';

export interface PanelState {
  readonly isOpen: boolean;
  readonly toggle: () => void;
}

const NAME = 'antiphon.chat-panel';
/** Width from which the panel is open until it is closed. */
const WIDE = '(width >= 100rem)';

/** Keeps whether the side panel is open. The key `]` switches it. */
export const usePanel = (): PanelState => {
  const [isOpen, setOpen] = useState(
    () => (localStorage.getItem(NAME) ?? String(matchMedia(WIDE).matches)) === 'true',
  );
  const toggle = (): void =>
    setOpen((before) => {
      localStorage.setItem(NAME, String(!before));
      return !before;
    });
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (event.key === ']' && isPlain && hasSingleKeys.get() && !isTyping(event.target)) toggle();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return { isOpen, toggle };
};

interface ChatPanelProps {
  readonly chat: FamilyChat;
  readonly log: SessionLog;
  readonly transcript: Transcript;
  readonly summary: Summary;
  readonly close: () => void;
}

const CHANGES = 200;

/** Returns the files that a session has changed, the newest change first. */
const useChanged = (sessionId: string) => {
  const { workspace } = useIdentity();
  const { data } = useRead(
    'readFileHistory',
    { params: { id: workspace }, query: { limit: CHANGES } },
    { changesOn: ({ category }) => category === 'file', hasPast: false },
  );
  const own = (data?.changes ?? []).filter(({ cause }) => cause.sessionId === sessionId);
  return [...new Map(own.toReversed().map((change) => [change.path, change])).values()].toReversed();
};

/** Takes a file away from later messages. */
const detach = (chat: string, path: string): Promise<unknown> =>
  client.http.sendChatCommand({
    params: { id: identity.get().workspace, chat },
    body: { command: 'detach', path },
  });

interface AttachedProps {
  readonly chat: string;
  readonly file: AttachedFile;
}

/** An attached file, and the way to take it away. */
const AttachedRow = ({ chat, file: { path, size } }: AttachedProps) => {
  const position = usePosition();
  const { run, isBusy, problem } = useAct();
  return (
    <li className={css.panelFile}>
      <VisibleText text={path} />
      <span className={ui.muted}>{formatBytes(size)} · attached</span>
      {position === null && (
        <ActButton
          permission="sessions:write"
          look="quiet"
          isOff={isBusy}
          label={`Detach ${path}`}
          onClick={() => run(() => detach(chat, path))}
        >
          Detach
        </ActButton>
      )}
      {problem && <ProblemBox problem={problem} />}
    </li>
  );
};

/** Files and facts of a chat. */
export const ChatPanel = ({ chat, log, transcript, summary, close }: ChatPanelProps) => {
  const files = attachedNow(log.events);
  const changed = useChanged(chat.sessionId);
  return (
    <aside className={css.panel} aria-label="About this chat">
      <div className={css.panelHead}>
        <h2>Files</h2>
        <IconButton icon="close" label="Close the side panel" onClick={close} />
      </div>
      {files.length + changed.length === 0 && <p className={ui.muted}>No file is attached or changed.</p>}
      <ul>
        {files.map((file) => (
          <AttachedRow key={file.path} chat={chat.id} file={file} />
        ))}
        {changed.map(({ path, type, at, cause }) => (
          <li key={`changed ${path}`} className={css.panelFile}>
            <VisibleText text={path} />
            <span className={ui.muted}>
              {type}{' '}
              {cause.turnId && <Link to={`/sessions/${chat.sessionId}/why/${cause.turnId}`}>by a turn</Link>}{' '}
              <Time at={at} />
            </span>
          </li>
        ))}
      </ul>
      <h2>Facts</h2>
      <dl className={ui.facts}>
        <dt>Agent</dt>
        <dd>
          <Link to={`/agents/${encodeURIComponent(chat.agentId)}`}>{chat.agentId}</Link>
        </dd>
        <dt>Model</dt>
        <dd>{transcript.turns.at(-1)?.model ?? 'none yet'}</dd>
        <dt>Created</dt>
        <dd>
          <Time at={chat.createdAt} />
        </dd>
        <dt>Messages</dt>
        <dd>{formatNumber(summary.count)}</dd>
        <dt>Tokens</dt>
        <dd>{summary.tokens}</dd>
        <dt>Cost</dt>
        <dd>{summary.costMicroUsd === null ? 'unknown' : formatUsd(summary.costMicroUsd)}</dd>
        <dt>Session</dt>
        <dd>
          <Link to={`/sessions/${chat.sessionId}`}>
            <Id id={chat.sessionId} />
          </Link>
        </dd>
      </dl>
    </aside>
  );
};
