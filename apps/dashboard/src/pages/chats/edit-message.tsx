import { useState, type FormEvent } from 'react';
import { Button, css as ui } from '../../ui/ui.js';
import css from './chats.module.css';

interface EditMessageProps {
  readonly text: string;
  readonly onSend: (text: string) => void;
  readonly onClose: () => void;
}

/** Writes another text of a message. It begins a branch: the message and its answer stay. */
export const EditMessage = ({ text, onSend, onClose }: EditMessageProps) => {
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
      </p>
      <div className={css.composerRow}>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" type="submit" icon="send" disabled={next.trim() === ''}>
          Send on a new branch
        </Button>
      </div>
    </form>
  );
};
