import { useState } from 'react';
import { navigate, useParam } from '../../data/router.js';
import { useAct, useRefusal } from '../../data/act.js';
import { ActButton } from '../../ui/act-button.js';
import { Field, ProblemBox } from '../../ui/ui.js';
import { startConversation } from '../session/start-conversation.js';
import type { Agent } from './agent-card.js';
import css from '../pages.module.css';

/** Begins a conversation by its first message. `?say=1` puts the focus there. */
export const NewConversation = ({ agent }: { readonly agent: Agent }) => {
  const { run, isBusy, problem } = useAct();
  const [text, setText] = useState('');
  const isInvited = useParam('say') === '1';
  const canStart = !isBusy && text.trim() !== '' && agent.state !== 'terminated';
  const refusal = useRefusal('sessions:write');
  const submit = (): void => {
    if (canStart && refusal === null) run(start);
  };
  const start = async (): Promise<void> => {
    const sessionId = await startConversation(agent.id, text);
    navigate(`/sessions/${sessionId}`);
  };
  return (
    <form
      className={css.stack}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {problem && <ProblemBox problem={problem} />}
      <Field label={`Message to ${agent.name}`} hint="Enter starts, Shift+Enter breaks the line.">
        {(props) => (
          <textarea
            {...props}
            rows={3}
            autoFocus={isInvited}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
              event.preventDefault();
              submit();
            }}
          />
        )}
      </Field>
      <div>
        <ActButton permission="sessions:write" type="submit" look="primary" icon="send" isOff={!canStart}>
          Start a conversation
        </ActButton>
      </div>
    </form>
  );
};
