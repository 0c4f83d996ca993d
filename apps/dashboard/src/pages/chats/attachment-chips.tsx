import { countOf, formatBytes, formatNumber } from '../../ui/format.js';
import { Icon } from '../../ui/icon.js';
import { Button, IconButton } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import type { Attachment } from './use-attachments.js';
import css from './chats.module.css';

/** Says what has become of a file that is not sent yet. */
const stateOf = ({ state, size, loaded, error }: Attachment): string => {
  if (state === 'failed') return `failed: ${error ?? 'unknown error'}`;
  if (state === 'uploading')
    return `uploading ${size === 0 ? 100 : Math.min(99, Math.round((100 * loaded) / size))} %`;
  return size === 0 ? 'attached · it is empty' : 'attached';
};

interface ChipProps {
  readonly attachment: Attachment;
  readonly remove: (id: number) => void;
  readonly retry: (id: number) => void;
  readonly undo: (attachment: Attachment) => void;
}

const Chip = ({ attachment, remove, retry, undo }: ChipProps) => {
  const { id, name, size, state, preview, pasted } = attachment;
  return (
    <li className={css.chip} data-state={state}>
      {preview ? <img src={preview} alt="" /> : <Icon name={state === 'failed' ? 'warning' : 'file'} />}
      <span className={css.chipName}>
        <VisibleText text={name} />
      </span>
      <span className={css.chipState}>
        {formatBytes(size)} · {stateOf(attachment)}
      </span>
      {state === 'uploading' && (
        <progress max={Math.max(1, size)} value={attachment.loaded} aria-hidden="true" />
      )}
      {state === 'failed' && (
        <Button look="quiet" onClick={() => retry(id)}>
          Retry
        </Button>
      )}
      {pasted !== null && (
        <Button look="quiet" onClick={() => undo(attachment)}>
          Undo
        </Button>
      )}
      <IconButton icon="close" label={`Remove ${name}`} onClick={() => remove(id)} />
    </li>
  );
};

interface ChipsProps extends Omit<ChipProps, 'attachment'> {
  readonly attachments: readonly Attachment[];
}

const announce = (attachments: readonly Attachment[]): string => {
  const uploading = attachments.filter(({ state }) => state === 'uploading').length;
  const failed = attachments.filter(({ state }) => state === 'failed').length;
  if (failed > 0) return `${countOf(failed, 'upload')} failed.`;
  if (uploading > 0) return `${countOf(uploading, 'file')} is uploaded.`;
  return attachments.length === 0 ? '' : `${countOf(attachments.length, 'file')} attached.`;
};

/** Lists the files of the next message with their states. */
export const AttachmentChips = ({ attachments, ...actions }: ChipsProps) => (
  <>
    {attachments.length > 0 && (
      <ul className={css.chips} aria-label="Files of the message">
        {attachments.map((attachment) => (
          <Chip key={attachment.id} attachment={attachment} {...actions} />
        ))}
      </ul>
    )}
    <p className="visually-hidden" role="status">
      {announce(attachments)}
    </p>
  </>
);

/** The part of a file that the model has read, from the context of a turn. */
export interface FileRead {
  readonly tokens: number;
  readonly isCut: boolean;
  readonly wholeTokens?: number | undefined;
  readonly sentAs?: 'text' | 'image' | 'document' | 'nothing' | undefined;
}

/** Says in words which part of a file the model has read. */
export const describeRead = ({ tokens, isCut, wholeTokens, sentAs = 'text' }: FileRead): string => {
  if (sentAs === 'nothing') return 'not sent to the model: it has no text that the model takes';
  if (sentAs !== 'text') return `sent as ${sentAs} · ${formatNumber(tokens)} tokens`;
  if (!isCut) return `read whole · ${formatNumber(tokens)} tokens`;
  if (wholeTokens === undefined) return `read in part · ${formatNumber(tokens)} tokens`;
  return `read ${formatNumber(tokens)} of ${formatNumber(wholeTokens)} tokens: it is larger than its share of the context`;
};
