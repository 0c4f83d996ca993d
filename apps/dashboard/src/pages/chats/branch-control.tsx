import { navigate } from '../../data/router.js';
import { countOf } from '../../ui/format.js';
import { IconButton } from '../../ui/ui.js';
import type { Fork } from './use-family.js';
import css from './chats.module.css';

interface BranchControlProps {
  readonly fork: Fork;
}

/** Says which of several branches the page shows, and goes to the others. */
export const BranchControl = ({ fork: { chats, index, hidden } }: BranchControlProps) => {
  const go = (to: number): void => {
    const chat = chats[to];
    if (chat) navigate(`/chats/${chat.id}`);
  };
  const others = chats.length - 1;
  return (
    <span className={css.branches} role="group" aria-label="Branches">
      <IconButton
        icon="previous"
        label="Previous branch"
        aria-disabled={index === 0}
        onClick={() => go(index - 1)}
      />
      <span aria-hidden="true">
        {index + 1}/{chats.length}
      </span>
      <span className="visually-hidden">
        answer {index + 1} of {chats.length}
      </span>
      <IconButton
        icon="next"
        label="Next branch"
        aria-disabled={index === others}
        onClick={() => go(index + 1)}
      />
      <span>{hiddenText(hidden, others)}</span>
    </span>
  );
};

/** Says how many messages the page does not show. */
const hiddenText = (hidden: number, others: number): string =>
  `${countOf(hidden, 'message')} ${hidden === 1 ? 'is' : 'are'} on ${others === 1 ? 'the other branch' : 'other branches'}`;
