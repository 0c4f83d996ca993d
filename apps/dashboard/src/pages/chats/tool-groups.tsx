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

const NONE: ReadonlySet<string> = new Set();

const isQuiet = ({ part }: KeyedPart, opened: ReadonlySet<string>): boolean =>
  part.kind === 'tool' && part.status === 'completed' && !opened.has(part.callId);

const toolOf = ({ part }: KeyedPart): ToolPart | null => (part.kind === 'tool' ? part : null);

/** Splits calls in a row, and gives groups the key of the row, so that they stay open as they grow. */
const foldRow = (row: readonly KeyedPart[], opened: ReadonlySet<string>): readonly (KeyedPart | Group)[] => {
  const folded: (KeyedPart | Group)[] = [];
  let groups = 0;
  for (let at = 0; at < row.length;) {
    let end = at;
    for (let part = row[end]; part && isQuiet(part, opened); part = row[end]) end++;
    const same = row.slice(at, Math.max(end, at + 1));
    const group = same.flatMap((part) => toolOf(part) ?? []);
    if (same.length < MIN_GROUP) folded.push(...same);
    else folded.push({ key: `group ${row[0]?.key} ${groups++}`, group });
    at += same.length;
  }
  return folded;
};

/**
 * Folds three or more successful tool calls in a row into one entry. Calls that run, failed, wait
 * for a decision or were opened by the reader stay in view.
 */
export const foldParts = (
  parts: readonly KeyedPart[],
  opened: ReadonlySet<string> = NONE,
): readonly (KeyedPart | Group)[] => {
  const folded: (KeyedPart | Group)[] = [];
  for (let at = 0; at < parts.length;) {
    let end = at;
    for (let part = parts[end]; part?.part.kind === 'tool'; part = parts[end]) end++;
    const row = parts.slice(at, Math.max(end, at + 1));
    folded.push(...(end > at ? foldRow(row, opened) : row));
    at += row.length;
  }
  return folded;
};

/** Shows successful tool calls in a row as one line that opens. */
export const ToolGroup = ({ parts }: { readonly parts: readonly ToolPart[] }) => {
  const ms = parts.reduce((sum, { durationMs }) => sum + (durationMs ?? 0), 0);
  const names = [...new Set(parts.map(({ name }) => name))];
  return (
    <details className={css.group} data-group="">
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
