import { useId, type ReactNode, type RefObject } from 'react';
import { ActButton } from '../../ui/act-button.js';
import { Icon } from '../../ui/icon.js';
import { classes, css as ui } from '../../ui/ui.js';
import { AttachmentChips } from './attachment-chips.js';
import { SuggestionList, suggestionId } from './suggestion-list.js';
import { useComposer, type ComposerOptions } from './use-composer.js';
import { useFileDrop } from './use-file-drop.js';
import css from './chats.module.css';

export type { ComposerHandle } from './use-composer.js';

interface AttachProps {
  readonly add: (files: readonly File[]) => void;
  readonly focus: () => void;
  readonly picker: RefObject<HTMLInputElement | null>;
}

const AttachButton = ({ add, focus, picker }: AttachProps) => (
  <>
    <input
      ref={picker}
      type="file"
      multiple
      hidden
      onChange={({ target }) => {
        add([...(target.files ?? [])]);
        target.value = '';
        focus();
      }}
    />
    <ActButton permission="files:write" look="quiet" icon="plus" onClick={() => picker.current?.click()}>
      Attach
    </ActButton>
  </>
);

interface SendProps extends Pick<ComposerOptions, 'onStop'> {
  readonly canSend: boolean;
}

const SendButtons = ({ canSend, onStop }: SendProps) => (
  <>
    {onStop && (
      <ActButton permission="sessions:write" icon="stop" onClick={onStop}>
        Stop
      </ActButton>
    )}
    <ActButton permission="sessions:write" type="submit" look="primary" icon="send" isOff={!canSend}>
      Send
    </ActButton>
  </>
);

interface ChatComposerProps extends ComposerOptions {
  /** Controls next to the button that attaches. */
  readonly children?: ReactNode;
}

/** Writes a message with its files. What is written is stored at once, and survives the page. */
export const ChatComposer = ({ children, ...options }: ChatComposerProps) => {
  const { onStop } = options;
  const composer = useComposer(options);
  const { text, change, attachments, refusal, canSend, send, undo, focus } = composer;
  const { list, add, remove, retry } = attachments;
  const { suggestions } = composer;
  const id = useId();
  const isSuggesting = suggestions.list.length > 0;
  const isDragged = useFileDrop(refusal === null ? (files) => add(files) : null);
  const hasFailed = list.some(({ state }) => state === 'failed');
  const hint = onStop ? 'Esc Esc stops' : '@ attaches, / commands';
  return (
    <form
      className={css.composer}
      aria-label="Write a message"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {isDragged && (
        <div className={css.drop} aria-hidden="true">
          <Icon name="plus" /> Drop files to attach them
        </div>
      )}
      <AttachmentChips attachments={list} remove={remove} retry={retry} undo={undo} />
      {isSuggesting && <SuggestionList id={id} {...suggestions} />}
      <textarea
        ref={composer.field}
        {...(isSuggesting && {
          'aria-controls': id,
          'aria-activedescendant': suggestionId(id, suggestions.index),
        })}
        aria-label="Message"
        placeholder={refusal ?? 'Message'}
        rows={2}
        autoFocus
        disabled={refusal !== null}
        value={text}
        onChange={(event) => change(event.target.value)}
        onPaste={composer.onPaste}
        onKeyDown={composer.onKeyDown}
      />
      <div className={css.composerRow}>
        <AttachButton {...{ add, focus }} picker={composer.picker} />
        {children}
        <span className={classes(ui.muted, css.hint)}>
          {hasFailed ? 'Retry or remove the failed file first' : hint}
        </span>
        <SendButtons canSend={canSend} onStop={onStop} />
      </div>
    </form>
  );
};
