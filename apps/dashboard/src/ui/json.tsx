import { useState } from 'react';
import { countOf } from './format.js';
import { VisibleText } from './visible-text.js';
import { Button, css } from './ui.js';

/** Longer texts are shown in part first, with their size. */
const PREVIEW = 4_000;
/** Characters that one press adds: a browser lays out more of them too slowly at once. */
const STEP = 200_000;

/** Returns true for a text of which only a part is shown first. */
export const isLongText = (text: string): boolean => text.length > PREVIEW;

/** Ends of the parts in which a text is shown. No end is within a character. */
const endsOf = (text: string, steps: number): readonly number[] =>
  Array.from({ length: steps + 1 }, (_, step) => {
    const end = step === 0 ? PREVIEW : step * STEP;
    const last = text.charCodeAt(end - 1);
    return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
  });

/** Returns indented JSON. Keys such as `__proto__` are only text here. */
export const printJson = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'null');

interface CodeProps {
  readonly text: string;
  readonly label: string;
  /** Shows everything at once, however long it is. */
  readonly isWhole?: boolean;
}

/** Shows an untrusted text in a fixed pitch, with its hidden characters made visible. */
export const Code = ({ text, label, isWhole = false }: CodeProps) => {
  const [steps, setSteps] = useState(0);
  const ends = isWhole ? [text.length] : endsOf(text, steps);
  const end = ends.at(-1) ?? 0;
  const left = text.length - end;
  return (
    <>
      <pre
        className={css.code}
        data-long={isLongText(text) ? '' : undefined}
        tabIndex={0}
        role="region"
        aria-label={label}
      >
        {ends.map((each, index) => (
          <VisibleText key={index} text={text.slice(ends[index - 1] ?? 0, each)} />
        ))}
      </pre>
      {left > 0 && (
        <Button onClick={() => setSteps(steps + 1)}>
          {text.length <= (steps + 1) * STEP
            ? `Show all ${countOf(text.length, 'character')}`
            : `Show more of the ${countOf(left, 'other character')}`}
        </Button>
      )}
    </>
  );
};

/** Shows a text in a cell of a table. A long one is first shown in part, with its size. */
export const LongText = ({ text, label }: Pick<CodeProps, 'text' | 'label'>) =>
  isLongText(text) ? <Code text={text} label={label} /> : <VisibleText text={text} />;

export const Json = ({ value, label, isWhole }: { value: unknown; label: string; isWhole?: boolean }) => (
  <Code text={printJson(value)} label={label} {...(isWhole === undefined ? {} : { isWhole })} />
);
