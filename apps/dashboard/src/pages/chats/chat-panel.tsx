import { useEffect, useState } from 'react';
import { hasSingleKeys, isTyping } from '../../app/keys.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { Link, usePosition } from '../../data/router.js';
import { plansOf } from '../../data/session-plans.js';
import type { Transcript, Turn } from '../../data/transcript.js';
import { formatBytes, formatNumber, formatUsd } from '../../ui/format.js';
import { ActButton } from '../../ui/act-button.js';
import { css as ui, IconButton, Id, ProblemBox, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import type { SessionLog } from '../session/session-log.js';
import type { Summary } from '../session/use-summary.js';
import { identity } from '../../data/identity.js';
import { attachedNow, type AttachedFile } from './attached-files.js';
import { ChangedFiles, useChangedFiles } from './chat-changes.js';
import { ChatPlan } from './chat-plan.js';
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
  /** Turns of the chat, with those of its origins. */
  readonly turns: readonly Turn[];
  readonly summary: Summary;
  readonly close: () => void;
}

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

/** Files, plan and facts of a chat. */
export const ChatPanel = ({ chat, log, transcript, turns, summary, close }: ChatPanelProps) => {
  const files = attachedNow(log.events);
  const { files: changed, isCut } = useChangedFiles(chat);
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
      </ul>
      <ChangedFiles chat={chat} files={changed} isCut={isCut} />
      <ChatPlan paths={plansOf(turns, [...changed, ...files])} />
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
