import type { Turn } from '../../data/transcript.js';
import { useRead } from '../../data/use-read.js';
import { formatBytes } from '../../ui/format.js';
import { Icon } from '../../ui/icon.js';
import { VisibleText } from '../../ui/visible-text.js';
import type { AttachedFile } from './attached-files.js';
import { describeRead } from './attachment-chips.js';
import css from './chats.module.css';

interface TurnFilesProps {
  readonly sessionId: string;
  readonly turn: Turn;
  readonly files: readonly AttachedFile[];
}

/** Reads the context of the newest model call of a turn, once there is one. */
export const useTurnContext = (sessionId: string, turn: Turn | null) => {
  const hasCall = turn !== null && (turn.model !== null || turn.usage.calls > 0 || turn.items.length > 0);
  const { data } = useRead(
    'readTurnContext',
    { params: { id: sessionId, turn: turn?.turnId ?? '' } },
    { hasPast: false, isOff: !hasCall },
  );
  return data;
};

/** Lists the files of a message, with the part of each that the model has read. */
export const TurnFiles = ({ sessionId, turn, files }: TurnFilesProps) => {
  const context = useTurnContext(sessionId, turn);
  const readOf = (path: string): string => {
    const read = context?.files.find((file) => file.path === path);
    return read ? describeRead(read) : 'attached';
  };
  return (
    <ul className={css.chips} aria-label="Attached files">
      {files.map(({ path, size }) => (
        <li key={path} className={css.chip}>
          <Icon name="file" />
          <span className={css.chipName}>
            <VisibleText text={path.slice(path.lastIndexOf('/') + 1)} />
          </span>
          <span className={css.chipState}>
            {formatBytes(size)} · {readOf(path)}
          </span>
        </li>
      ))}
    </ul>
  );
};
