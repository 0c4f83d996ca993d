import { useState } from 'react';
import { VisibleText } from './visible-text.js';
import { Button, css } from './ui.js';

/** Longer texts are shown in part first, with their size. */
const PREVIEW = 4_000;

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
  const [isOpen, setOpen] = useState(isWhole);
  const isLong = text.length > PREVIEW;
  const shown = isOpen || !isLong ? text : text.slice(0, PREVIEW);
  return (
    <>
      <pre className={css.code} tabIndex={0} role="region" aria-label={label}>
        <VisibleText text={shown} />
      </pre>
      {isLong && !isOpen && (
        <Button onClick={() => setOpen(true)}>
          Show all {text.length.toLocaleString('en-US')} characters
        </Button>
      )}
    </>
  );
};

export const Json = ({ value, label, isWhole }: { value: unknown; label: string; isWhole?: boolean }) => (
  <Code text={printJson(value)} label={label} {...(isWhole === undefined ? {} : { isWhole })} />
);
