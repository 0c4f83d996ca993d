import { useState } from 'react';
import { Button, css as ui } from './ui.js';
import css from './diff.module.css';
import { VisibleText } from './visible-text.js';

/** Longer diffs are shown in part first. */
const MAX_LINES = 200;

const MARKS = [
  ['@@', 'place'],
  ['--- ', 'file'],
  ['+++ ', 'file'],
  ['-', 'removed'],
  ['+', 'added'],
] as const;

const kindOf = (line: string): string | undefined => MARKS.find(([mark]) => line.startsWith(mark))?.[1];

interface DiffProps {
  /** Unified diff. */
  readonly text: string;
  readonly label: string;
  /** Shows everything at once, however long it is. */
  readonly isWhole?: boolean;
}

/** Shows a unified diff. Signs and colours both tell what is added and removed. */
export const Diff = ({ text, label, isWhole = false }: DiffProps) => {
  const [isOpen, setOpen] = useState(isWhole);
  const lines = text.replace(/\n$/, '').split('\n');
  const isLong = lines.length > MAX_LINES;
  return (
    <>
      <pre className={ui.code} tabIndex={0} role="region" aria-label={label}>
        {(isOpen || !isLong ? lines : lines.slice(0, MAX_LINES)).map((line, index) => (
          <span key={index} className={css.line} data-kind={kindOf(line)}>
            <VisibleText text={line} />
          </span>
        ))}
      </pre>
      {isLong && !isOpen && (
        <Button onClick={() => setOpen(true)}>Show all {lines.length.toLocaleString('en-US')} lines</Button>
      )}
    </>
  );
};
