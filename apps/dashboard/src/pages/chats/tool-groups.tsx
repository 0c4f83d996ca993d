import type { ToolPart } from '../../data/turn-parts.js';
import { countOf, formatDuration } from '../../ui/format.js';
import { Icon } from '../../ui/icon.js';
import { Tool, type PartProps } from '../session/turn-parts-view.js';
import session from '../session/session.module.css';
import css from './chats.module.css';

type KeyedPart = PartProps & { readonly key: string };
interface Group {
  readonly key: string;
  readonly group: readonly ToolPart[];
}

/** Fewer calls in a row are shown one by one. */
const MIN_GROUP = 3;

const isQuiet = ({ part }: KeyedPart): boolean => part.kind === 'tool' && part.status === 'completed';

/**
 * Folds three or more successful tool calls in a row into one entry. Calls that run, failed or wait
 * for a decision stay in view. A group has the key of its first call, so that it stays open.
 */
export const foldParts = (parts: readonly KeyedPart[]): readonly (KeyedPart | Group)[] => {
  const folded: (KeyedPart | Group)[] = [];
  for (let at = 0; at < parts.length;) {
    let end = at;
    for (let part = parts[end]; part && isQuiet(part); part = parts[end]) end++;
    const row = parts.slice(at, Math.max(end, at + 1));
    if (row.length < MIN_GROUP) folded.push(...row);
    else {
      const group = row.flatMap(({ part }) => (part.kind === 'tool' ? [part] : []));
      folded.push({ key: `group ${group[0]?.key}`, group });
    }
    at += row.length;
  }
  return folded;
};

/** Shows successful tool calls in a row as one line that opens. */
export const ToolGroup = ({ parts }: { readonly parts: readonly ToolPart[] }) => {
  const ms = parts.reduce((sum, { durationMs }) => sum + (durationMs ?? 0), 0);
  const names = [...new Set(parts.map(({ name }) => name))];
  return (
    <details className={css.group}>
      <summary>
        <Icon name="tool" />
        <span>{countOf(parts.length, 'tool call')}</span>
        <Icon name="check" size={14} />
        <span className={session.small}>
          {formatDuration(ms)} · {names.slice(0, 4).join(', ')}
          {names.length > 4 && ` and ${names.length - 4} more`}
        </span>
      </summary>
      <div className={css.groupBody}>
        {parts.map((part) => (
          <Tool key={part.key} part={part} />
        ))}
      </div>
    </details>
  );
};
