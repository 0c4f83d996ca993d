import { useState, type KeyboardEvent } from 'react';
import { useAct, useRefusal } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { ActButton } from '../../ui/act-button.js';
import { ProblemBox } from '../../ui/ui.js';
import css from './session.module.css';

/** Sends a message and waits only until it is a fact; the log and the frames bring the rest. */
export const sendMessage = async (sessionId: string, content: string): Promise<void> => {
  const abort = new AbortController();
  const turn = client.send({ sessionId, content }, { signal: abort.signal });
  try {
    await turn.accepted;
  } finally {
    abort.abort();
  }
};

export const Composer = ({ sessionId }: { readonly sessionId: string }) => {
  const [text, setText] = useState('');
  const { run, isBusy, problem } = useAct();
  const refusal = useRefusal('sessions:write');
  const canSend = text.trim() !== '' && !isBusy && refusal === null;
  const send = (): void => {
    if (!canSend) return;
    run(async () => {
      await sendMessage(sessionId, text);
      setText('');
    });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      className={css.composer}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {problem && <ProblemBox problem={problem} />}
      <textarea
        aria-label="Message"
        placeholder={refusal ?? 'Message (Enter sends, Shift+Enter breaks the line)'}
        rows={Math.min(8, Math.max(2, text.split('\n').length))}
        disabled={refusal !== null}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <ActButton permission="sessions:write" type="submit" look="primary" icon="send" isOff={!canSend}>
        Send
      </ActButton>
    </form>
  );
};
