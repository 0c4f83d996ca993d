import { VisibleText } from '../../ui/visible-text.js';
import type { Suggestion } from './use-suggestions.js';
import css from './chats.module.css';

interface SuggestionListProps {
  readonly id: string;
  readonly list: readonly Suggestion[];
  readonly index: number;
}

/** Returns the id of the element of a suggestion. */
export const suggestionId = (id: string, index: number): string => `${id}-${index}`;

/** Lists what completes the text of the field. */
export const SuggestionList = ({ id, list, index }: SuggestionListProps) => (
  <div id={id} role="listbox" aria-label="Suggestions" className={css.suggestions}>
    {list.map(({ id: key, label, hint, apply }, at) => (
      <div
        key={key}
        id={suggestionId(id, at)}
        role="option"
        aria-selected={at === index}
        // The field keeps the focus.
        onMouseDown={(event) => event.preventDefault()}
        onClick={apply}
      >
        <span>
          <VisibleText text={label} />
        </span>
        <small>{hint}</small>
      </div>
    ))}
  </div>
);
