import { useState, type FormEvent } from 'react';
import { Button, css as ui } from '../../ui/ui.js';
import css from './chats.module.css';

interface EditMessageProps {
  readonly text: string;
  readonly onSend: (text: string) => void;
  /** Changes the text for later messages only; absent for a message of an origin. */
  readonly onCorrect?: ((text: string) => void) | undefined;
  readonly onClose: () => void;
}

/**
 * Writes another text of a message. It begins a branch, so that the message and its answer stay, or
 * it corrects the text for later messages.
 */
export const EditMessage = ({ text, onSend, onCorrect, onClose }: EditMessageProps) => {
  const [next, setNext] = useState(text);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (next.trim() !== '') onSend(next);
  };
  return (
    <form className={css.edit} aria-label="Edit the message" onSubmit={submit}>
      <textarea
        aria-label="New text of the message"
        className={ui.input}
        rows={3}
        autoFocus
        value={next}
        onChange={(event) => setNext(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onClose();
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
          submit(event);
        }}
      />
      <p className={ui.muted}>
        It is sent on a new branch. This message and what follows stay on the old one.
        {onCorrect && ' A correction is for later messages only: no answer is given again.'}
      </p>
      <div className={css.composerRow}>
        <Button onClick={onClose}>Cancel</Button>
        {onCorrect && (
          <Button
            disabled={next.trim() === '' || next === text}
            onClick={() => next.trim() !== '' && onCorrect(next)}
          >
            Correct the text
          </Button>
        )}
        <Button look="primary" type="submit" icon="send" disabled={next.trim() === ''}>
          Send on a new branch
        </Button>
      </div>
    </form>
  );
};
