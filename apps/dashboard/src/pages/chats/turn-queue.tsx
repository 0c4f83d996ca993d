import { useAct } from '../../data/act.js';
import type { Draft } from '../../data/drafts.js';
import { client } from '../../data/gateway.js';
import { useStore } from '../../data/store.js';
import type { Turn } from '../../data/transcript.js';
import { outboxOf, type Outgoing } from '../../data/outbox.js';
import { countOf } from '../../ui/format.js';
import { ActButton } from '../../ui/act-button.js';
import { Button, ProblemBox } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from './chats.module.css';

interface QueueProps {
  readonly chat: string;
  readonly sessionId: string;
  /** Turns that wait for the running one. */
  readonly turns: readonly Turn[];
  /** Gives a text back to the field. */
  readonly give: (draft: Draft) => void;
}

const QueuedTurn = ({
  turn,
  sessionId,
  give,
}: { readonly turn: Turn } & Omit<QueueProps, 'turns' | 'chat'>) => {
  const { run, isBusy, problem } = useAct();
  const { turnId, message } = turn;
  const cancel = (): Promise<unknown> => client.call('session.cancel', { sessionId, turnId });
  const edit = async (): Promise<void> => {
    await cancel();
    give({ text: message.text, files: [] });
  };
  return (
    <li className={css.queued} data-queued={turnId}>
      <span>
        queued: <VisibleText text={message.text} />
      </span>
      <ActButton permission="sessions:write" look="quiet" isOff={isBusy} onClick={() => run(edit)}>
        Edit
      </ActButton>
      <ActButton permission="sessions:write" look="quiet" isOff={isBusy} onClick={() => run(cancel)}>
        Remove
      </ActButton>
      {problem && <ProblemBox problem={problem} />}
    </li>
  );
};

const UnsentMessage = ({
  chat,
  message,
  give,
}: { readonly message: Outgoing } & Pick<QueueProps, 'chat' | 'give'>) => {
  const { key, text, files, problem } = message;
  const outbox = outboxOf(chat);
  const edit = (): void => {
    outbox.remove(key);
    give({ text, files });
  };
  return (
    <li className={css.queued} data-unsent="" data-failed={problem ? '' : undefined}>
      <span>
        {problem ? 'not sent' : 'not sent yet'}: <VisibleText text={text} />
      </span>
      {problem && (
        <>
          <Button look="quiet" onClick={() => outbox.retry(key)}>
            Retry
          </Button>
          <Button look="quiet" onClick={edit}>
            Edit
          </Button>
          <ProblemBox problem={problem} />
        </>
      )}
    </li>
  );
};

/** Shows the messages that wait: for the running turn, or for the connection. */
export const TurnQueue = ({ chat, sessionId, turns, give }: QueueProps) => {
  const unsent = useStore(outboxOf(chat).messages);
  const { run, isBusy } = useAct();
  if (turns.length === 0 && unsent.length === 0) return null;
  return (
    <ul className={css.queue} aria-label="Messages that wait">
      {turns.map((turn) => (
        <QueuedTurn key={turn.turnId} {...{ turn, sessionId, give }} />
      ))}
      {unsent.map((message) => (
        <UnsentMessage key={message.key} {...{ chat, message, give }} />
      ))}
      {turns.length > 0 && (
        <li className={css.queueEnd}>
          <span>{countOf(turns.length, 'message')} after this answer</span>
          <ActButton
            permission="sessions:write"
            look="quiet"
            icon="stop"
            isOff={isBusy}
            onClick={() => run(() => client.call('session.cancel', { sessionId }))}
          >
            Stop all
          </ActButton>
        </li>
      )}
    </ul>
  );
};
